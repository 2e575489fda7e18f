//! Followers that never read, while a process writes 1 GiB: what everybody else notices of them.
//!
//! Two daemons, of which one has the followers. They write and are asked in turn, so that what is
//! compared was taken at about the same time; each has the memory that its own rounds have made.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::cost::Cost;
use super::daemon::Daemon;
use super::samples::{Samples, timed};
use super::wire::Connection;

const ROUNDS: usize = 6;
const BYTES: u64 = 1 << 30;
/// Of each kind: by server-sent events and by WebSocket.
const FOLLOWERS: usize = 10;
/// Text, as followers get most: zeros would take six times their length in an event.
const WRITER: &str = "{\"stdin\":\"open\",\"shell\":\"read line; yes 'a line of some build' | \
                      dd bs=64k count=16384 iflag=fullblock status=none\"}";
const RUN: &str = r#"{"command":["/bin/true"],"wait":{"exit":true}}"#;
const UPGRADE: &str = "Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                       Sec-WebSocket-Key: bGFzdGJ5dGUgaXMgaGVyZQ==\r\n";

/// What the others of one daemon have seen.
#[derive(Default)]
struct Seen {
    runs: Vec<Duration>,
    looks: Vec<Duration>,
    polls: Vec<Duration>,
    writes: Vec<Duration>,
    peak_memory: u64,
}

pub(super) fn run() -> Result<()> {
    let daemons = [Daemon::start()?, Daemon::start()?];
    let at_rest = [Cost::of(daemons[0].pid())?.memory, Cost::of(daemons[1].pid())?.memory];
    let mut seen = [Seen::default(), Seen::default()];
    for _ in 0..ROUNDS {
        for ((daemon, seen), followers) in daemons.iter().zip(&mut seen).zip([0, FOLLOWERS]) {
            round(daemon, seen, followers)?;
        }
    }
    println!(
        "neglect: 1 GiB with {FOLLOWERS} who follow and {FOLLOWERS} who are attached and never read, in turn"
    );
    println!("         with nobody, {ROUNDS} rounds of each; others meanwhile, over TCP");
    let [alone, neglected] = seen;
    let memory = [alone.peak_memory, neglected.peak_memory];
    print("run of true", alone.runs, neglected.runs);
    print("show", alone.looks, neglected.looks);
    print("output of 6 bytes", alone.polls, neglected.polls);
    print_writer(alone.writes, neglected.writes);
    for (who, memory, at_rest) in
        [("nobody", memory[0], at_rest[0]), ("followers", memory[1], at_rest[1])]
    {
        let (memory, at_rest) = (memory as f64 / 1e6, at_rest as f64 / 1e6);
        println!("  memory with {who:9}  {memory:.1} MB at the most, {at_rest:.1} at rest");
    }
    Ok(())
}

fn print(what: &str, alone: Vec<Duration>, neglected: Vec<Duration>) {
    let (alone, neglected) = (Samples::new(alone), Samples::new(neglected));
    let p99 = |samples: &Samples| samples.quantile(0.99).as_secs_f64();
    println!("  {what}");
    println!("    with nobody     {alone}");
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
    println!("    with nobody     {:.0} MB/s", rate(&alone));
    println!("    with followers  {:.0} MB/s", rate(&neglected));
    println!("    ratio           {:.2} (aim: 1)", 1.0 / neglected.ratio_to(&alone));
}

/// Lets a process write while so many of each kind follow and never read, and others ask.
fn round(daemon: &Daemon, seen: &mut Seen, followers: usize) -> Result<()> {
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
            seen.peak_memory = seen.peak_memory.max(Cost::of(daemon.pid())?.memory);
        }
        let (answer, took) = writing.join().expect("the waiter panicked")?;
        let answer: serde_json::Value = serde_json::from_slice(&answer)?;
        let len = answer["process"]["ending"]["final_len"].as_u64();
        ensure!(len == Some(BYTES), "not all of it was written: {answer}");
        seen.writes.push(took);
        Ok(())
    })?;
    drop(idle);
    // Its log is not for the next round to be measured with.
    control.delete(&format!("/v1/processes/{writer}?stop=true"))
}

/// Connections that follow the process and never read a byte, once each is being answered.
fn follow(daemon: &Daemon, id: &str, count: usize) -> Result<Vec<Connection>> {
    let mut idle = Vec::new();
    for _ in 0..count {
        // A process that has written nothing: an attachment begins with words, a follower with a
        // head.
        for (below, fields) in [("follow", ""), ("attach", UPGRADE)] {
            let mut connection = Connection::open(&daemon.tcp())?;
            connection.send_with("GET", &format!("/v1/processes/{id}/{below}"), fields, "")?;
            connection.until_something_comes().context("no answer")?;
            idle.push(connection);
        }
    }
    Ok(idle)
}

fn ask(others: &mut Connection, small: &str, seen: &mut Seen) -> Result<()> {
    seen.runs.push(timed(|| others.post("/v1/processes", RUN))?);
    for _ in 0..4 {
        seen.looks.push(timed(|| others.get(&format!("/v1/processes/{small}")))?);
        seen.polls.push(timed(|| others.get(&format!("/v1/processes/{small}/output")))?);
    }
    Ok(())
}
