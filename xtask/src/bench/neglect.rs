//! Followers that never read while a process writes 1 GiB: how they affect other clients.
//!
//! Two daemons, one of which has the followers, are measured in turn, so that the compared figures
//! are taken at about the same time and each daemon's memory comes from its own rounds.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::daemon::Daemon;
use super::samples::{Samples, timed};
use super::usage::ProcessUsage;
use super::wire::{Connection, RUN_TRUE, UPGRADE};

const ROUNDS: usize = 6;
const BYTES: u64 = 1 << 30;
/// Of each kind: server-sent events and WebSocket.
const FOLLOWERS: usize = 10;
/// Text, as is usual: zero bytes would take six times their length in an event.
const WRITER: &str = "{\"stdin\":\"open\",\"shell\":\"read line; yes 'a line of some build' | \
                      dd bs=64k count=16384 iflag=fullblock status=none\"}";

/// What the other clients of one daemon measured.
#[derive(Default)]
struct Measured {
    runs: Vec<Duration>,
    looks: Vec<Duration>,
    polls: Vec<Duration>,
    writes: Vec<Duration>,
    peak_memory: u64,
}

pub(super) fn run() -> Result<()> {
    let daemons = [Daemon::start()?, Daemon::start()?];
    let at_rest = [
        ProcessUsage::read(daemons[0].pid())?.memory,
        ProcessUsage::read(daemons[1].pid())?.memory,
    ];
    let mut seen = [Measured::default(), Measured::default()];
    for _ in 0..ROUNDS {
        for ((daemon, seen), followers) in daemons.iter().zip(&mut seen).zip([0, FOLLOWERS]) {
            round(daemon, seen, followers)?;
        }
    }
    println!(
        "neglect: 1 GiB with {FOLLOWERS} followers and {FOLLOWERS} attached clients that never read, in turn"
    );
    println!("         with none, {ROUNDS} rounds of each; other clients meanwhile, over TCP");
    let [alone, neglected] = seen;
    let memory = [alone.peak_memory, neglected.peak_memory];
    print("run of true", alone.runs, neglected.runs);
    print("show", alone.looks, neglected.looks);
    print("output of 6 bytes", alone.polls, neglected.polls);
    print_writer(alone.writes, neglected.writes);
    for (who, memory, at_rest) in
        [("none", memory[0], at_rest[0]), ("followers", memory[1], at_rest[1])]
    {
        let (memory, at_rest) = (memory as f64 / 1e6, at_rest as f64 / 1e6);
        println!("  memory with {who:9}  peak {memory:.1} MB, {at_rest:.1} at rest");
    }
    Ok(())
}

fn print(what: &str, alone: Vec<Duration>, neglected: Vec<Duration>) {
    let (alone, neglected) = (Samples::new(alone), Samples::new(neglected));
    let p99 = |samples: &Samples| samples.quantile(0.99).as_secs_f64();
    println!("  {what}");
    println!("    with none       {alone}");
    println!("    with followers  {neglected}");
    println!(
        "    ratio           {:.2} at p50, {:.2} at p99 (aim: 1)",
        neglected.ratio_to(&alone),
        p99(&neglected) / p99(&alone)
    );
}

fn print_writer(alone: Vec<Duration>, neglected: Vec<Duration>) {
    let (alone, neglected) = (Samples::new(alone), Samples::new(neglected));
    let rate = |samples: &Samples| BYTES as f64 / samples.median().as_secs_f64() / 1e6;
    println!("  the writer, median of {ROUNDS}");
    println!("    with none       {:.0} MB/s", rate(&alone));
    println!("    with followers  {:.0} MB/s", rate(&neglected));
    println!("    ratio           {:.2} (aim: 1)", 1.0 / neglected.ratio_to(&alone));
}

/// Lets a process write while `followers` of each kind never read and other clients send requests.
fn round(daemon: &Daemon, seen: &mut Measured, followers: usize) -> Result<()> {
    let mut control = Connection::open(&daemon.tcp())?;
    let small = control.start(r#"{"shell":"echo hello","wait":{"exit":true}}"#)?;
    let writer = control.start(WRITER)?;
    let idle = follow(daemon, &writer, followers)?;
    let (mut others, mut waiter) =
        (Connection::open(&daemon.tcp())?, Connection::open(&daemon.tcp())?);
    let wait = format!("/v1/processes/{writer}/wait");
    control.post(&format!("/v1/processes/{writer}/stdin"), "\n")?;
    let begun = Instant::now();
    thread::scope(|scope| -> Result<()> {
        let writing = scope.spawn(move || -> Result<(Vec<u8>, Duration)> {
            let answer = waiter.post(&wait, r#"{"exit":true}"#)?;
            Ok((answer, begun.elapsed()))
        });
        while !writing.is_finished() {
            ask(&mut others, &small, seen)?;
            seen.peak_memory = seen.peak_memory.max(ProcessUsage::read(daemon.pid())?.memory);
        }
        let (answer, took) = writing.join().expect("the waiter panicked")?;
        let answer: serde_json::Value = serde_json::from_slice(&answer)?;
        let len = answer["process"]["ending"]["final_len"].as_u64();
        ensure!(len == Some(BYTES), "not all bytes were written: {answer}");
        seen.writes.push(took);
        Ok(())
    })?;
    drop(idle);
    // So that its log does not affect the next round.
    control.delete(&format!("/v1/processes/{writer}?stop=true"))
}

/// Opens connections that follow the process and never read; each answer has begun.
fn follow(daemon: &Daemon, id: &str, count: usize) -> Result<Vec<Connection>> {
    let mut idle = Vec::new();
    for _ in 0..count {
        // The process has written nothing yet, but the answer starts with a head.
        for (below, fields) in [("follow", ""), ("attach", UPGRADE)] {
            let mut connection = Connection::open(&daemon.tcp())?;
            connection.send_with("GET", &format!("/v1/processes/{id}/{below}"), fields, "")?;
            connection.wait_readable().context("no answer")?;
            idle.push(connection);
        }
    }
    Ok(idle)
}

fn ask(others: &mut Connection, small: &str, seen: &mut Measured) -> Result<()> {
    seen.runs.push(timed(|| others.post("/v1/processes", RUN_TRUE))?);
    for _ in 0..4 {
        seen.looks.push(timed(|| others.get(&format!("/v1/processes/{small}")))?);
        seen.polls.push(timed(|| others.get(&format!("/v1/processes/{small}/output")))?);
    }
    Ok(())
}
