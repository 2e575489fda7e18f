//! Cost curves: what a command, its output, its readers and its history cost as their number grows.
//!
//! Each point is measured in turn with its floor. Prints tables, and writes charts to `target/curves`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::daemon::Daemon;
use super::samples::{Samples, WARM_UP, in_turn, timed};
use super::spawn::plain;
use super::usage::{ProcessUsage, processor_time};
use super::wire::{Connection, RUN_TRUE};
use super::{copy, program};
use crate::chart::Chart;

const RUNNING: [usize; 7] = [10, 100, 1000, 2000, 4000, 6000, 8000];
const MIB: [u64; 6] = [1, 4, 16, 64, 256, 1024];
const READERS: [usize; 4] = [1, 10, 100, 1000];
const ENDED: [usize; 4] = [0, 1000, 10_000, 100_000];
const ROUNDS: usize = 200;
/// A running process with merged output has a pipe, a pidfd and a log file.
const DESCRIPTORS_EACH: u64 = 3;
const FOLDER: &str = "target/curves";

pub(super) fn run() -> Result<()> {
    fs::create_dir_all(FOLDER)?;
    running()?;
    output()?;
    readers()?;
    ended()?;
    println!("curves: the charts are in {FOLDER}");
    Ok(())
}

/// A table, and the chart of some of its columns.
struct Curve<const N: usize> {
    columns: [&'static str; N],
    labels: Vec<String>,
    rows: Vec<[f64; N]>,
}

impl<const N: usize> Curve<N> {
    fn new(title: &str, columns: [&'static str; N]) -> Self {
        println!("curves: {title}\n  {:>10}  {}", "", columns.join(" | "));
        Self { columns, labels: Vec::new(), rows: Vec::new() }
    }

    fn add(&mut self, label: String, row: [f64; N]) {
        println!("  {label:>10}  {}", row.map(|value| format!("{value:.1}")).join(" | "));
        self.labels.push(label);
        self.rows.push(row);
    }

    /// Points stand side by side, however far apart their numbers are.
    fn draw(&self, name: &str, title: &str, columns: &[usize]) -> Result<()> {
        let at: Vec<f64> = (0..self.rows.len()).map(|nth| nth as f64).collect();
        let line = |nth: &usize| {
            (self.columns[*nth], self.rows.iter().map(|row| row[*nth]).collect::<Vec<f64>>())
        };
        let lines: Vec<_> = columns.iter().map(line).collect();
        let ticks = at.iter().copied().zip(self.labels.iter().cloned()).collect();
        let chart = Chart { title, lines: &lines, at: &at, ticks };
        Ok(fs::write(Path::new(FOLDER).join(name).with_extension("svg"), chart.to_svg())?)
    }
}

/// A start and a look beside many running processes.
fn running() -> Result<()> {
    let limit = descriptor_limit()?;
    let daemon = Daemon::start()?;
    let connection = &mut Connection::open(&daemon.unix())?;
    // One-time allocations happen before the count.
    for _ in 0..ROUNDS {
        connection.post("/v1/processes", RUN_TRUE)?;
    }
    let before = ProcessUsage::read(daemon.pid())?.memory;
    let mut curve = Curve::new(
        "beside running processes",
        ["start and wait (µs)", "floor: posix_spawn (µs)", "show (µs)", "KB of memory each"],
    );
    let mut started = 0;
    for count in RUNNING {
        if count as u64 * DESCRIPTORS_EACH + 200 > limit {
            println!("  not run: {count} processes: only {limit} descriptors are permitted");
            break;
        }
        let mut id = String::new();
        while started < count {
            id = connection.start(r#"{"command":["sleep","3600"]}"#)?;
            started += 1;
        }
        let path = format!("/v1/processes/{id}");
        let [run, show, floor] = in_turn(WARM_UP, ROUNDS, || {
            let run = timed(|| connection.post("/v1/processes", RUN_TRUE))?;
            Ok([run, timed(|| connection.get(&path))?, plain()?])
        })?;
        let grown = ProcessUsage::read(daemon.pid())?.memory.saturating_sub(before);
        let each = grown as f64 / count as f64 / 1e3;
        curve.add(count.to_string(), [micros(&run), micros(&floor), micros(&show), each]);
    }
    curve.draw("running", "Start and wait for /bin/true, beside running processes", &[0, 1, 2])?;
    curve.draw("running-memory", "Memory of each running process (KB)", &[3])
}

/// As root, raises what the servers started here may have.
fn descriptor_limit() -> Result<u64> {
    let wanted = *RUNNING.last().context("no point")? as u64 * DESCRIPTORS_EACH + 1000;
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let more = Rlimit { current: Some(wanted), maximum: Some(wanted) };
    let is_raised = limit < wanted && setrlimit(Resource::Nofile, more).is_ok();
    Ok(if is_raised { wanted } else { limit })
}

/// From a small output to a large one, which the quota cuts.
fn output() -> Result<()> {
    let daemon = Daemon::start()?;
    let folder = tempfile::tempdir()?;
    let connection = &mut Connection::open(&daemon.unix())?;
    let mut curve = Curve::new(
        "with the length of the output",
        ["MiB a second", "floor: splice (MiB a second)", "ms of the server for each MiB"],
    );
    for mib in MIB {
        let command = serde_json::to_string(&copy::writer(mib << 20))?;
        let body = format!(r#"{{"command":{command},"wait":{{"exit":true}},"max_bytes":1024}}"#);
        let rounds = (256 / mib).clamp(5, 40) as usize;
        let used = processor_time(daemon.pid())?;
        let [run, floor] = in_turn(0, rounds, || {
            let begun = Instant::now();
            let id = connection.start(&body)?;
            let run = begun.elapsed();
            connection.delete(&format!("/v1/processes/{id}"))?;
            Ok([run, copy::bare(folder.path(), mib << 20)?])
        })?;
        let used = processor_time(daemon.pid())?.saturating_sub(used);
        let rate = |samples: &Samples| mib as f64 / samples.median().as_secs_f64();
        let each = used.as_secs_f64() * 1e3 / (mib as f64 * rounds as f64);
        curve.add(format!("{mib} MiB"), [rate(&run), rate(&floor), each]);
    }
    curve.draw("output", "Output, from its start until its ending (MiB a second)", &[0, 1])?;
    curve.draw("output-cpu", "Processor time of the server for each MiB (ms)", &[2])
}

/// Clients that follow one process, which prints 64 KiB at once.
fn readers() -> Result<()> {
    let daemon = Daemon::start()?;
    let control = &mut Connection::open(&daemon.unix())?;
    let mut curve = Curve::new(
        "with the number of followers",
        ["µs until each has the ending", "µs of the server for each"],
    );
    for count in READERS {
        let rounds = (200 / count).max(3);
        let (mut times, mut used) = (Vec::new(), Duration::ZERO);
        for _ in 0..rounds {
            let (time, processor) = followed(&daemon, control, count)?;
            times.push(time);
            used += processor;
        }
        let each = Samples::new(times).median().as_secs_f64() * 1e6 / count as f64;
        let used = used.as_secs_f64() * 1e6 / (count * rounds) as f64;
        curve.add(count.to_string(), [each, used]);
    }
    curve.draw("readers", "64 KiB to followers of one process, for each of them (µs)", &[0, 1])
}

/// How long it takes until all followers have the ending, and what the server needs for it.
fn followed(
    daemon: &Daemon,
    control: &mut Connection,
    count: usize,
) -> Result<(Duration, Duration)> {
    let shell =
        "{\"stdin\":\"open\",\"shell\":\"read line; yes 'a line of some build' | head -c 65536\"}";
    let id = control.start(shell)?;
    let mut followers = Vec::new();
    for _ in 0..count {
        let mut follower = Connection::open(&daemon.unix())?;
        follower.send("GET", &format!("/v1/processes/{id}/follow"), "")?;
        // The answer begins before there is output.
        follower.read_until(b"\r\n\r\n")?;
        followers.push(follower);
    }
    let before = processor_time(daemon.pid())?;
    let begun = Instant::now();
    control.post(&format!("/v1/processes/{id}/stdin"), "\n")?;
    for follower in &mut followers {
        follower.read_until(b"event: ending")?;
    }
    let time = begun.elapsed();
    let used = processor_time(daemon.pid())?.saturating_sub(before);
    drop(followers);
    control.delete(&format!("/v1/processes/{id}"))?;
    Ok((time, used))
}

/// What ended processes cost a start and a look.
fn ended() -> Result<()> {
    let daemon = Daemon::start_as(
        Command::new(program::lastbyte()?),
        &["serve", "--no-keeper", "--keep-processes", "200000"],
    )?;
    let connection = &mut Connection::open(&daemon.unix())?;
    let one = connection.start(r#"{"command":["sleep","3600"],"session":"one"}"#)?;
    let mut curve = Curve::new(
        "beside ended processes",
        [
            "start and wait (µs)",
            "floor: posix_spawn (µs)",
            "what runs (µs)",
            "newest 100 (µs)",
            "MB of memory",
        ],
    );
    let mut count = 0;
    for wanted in ENDED {
        while count < wanted {
            connection.post("/v1/processes", RUN_TRUE)?;
            count += 1;
        }
        let [run, running, newest, floor] = in_turn(WARM_UP, ROUNDS, || {
            let run = timed(|| connection.post("/v1/processes", RUN_TRUE))?;
            count += 1;
            let begun = Instant::now();
            let found = connection.get("/v1/processes?phase=running")?;
            let running = begun.elapsed();
            ensure!(found.windows(one.len()).any(|text| text == one.as_bytes()), "it still runs");
            Ok([run, running, timed(|| connection.get("/v1/processes?limit=100"))?, plain()?])
        })?;
        let memory = ProcessUsage::read(daemon.pid())?.memory as f64 / 1e6;
        let times = [&run, &floor, &running, &newest].map(micros);
        curve.add(wanted.to_string(), [times[0], times[1], times[2], times[3], memory]);
    }
    curve.draw("ended", "Beside ended processes (µs)", &[0, 1, 2])?;
    curve.draw("ended-memory", "Memory with ended processes (MB)", &[4])
}

fn micros(samples: &Samples) -> f64 {
    samples.median().as_secs_f64() * 1e6
}
