//! A million commands through one server: each must have its last byte and its exit code, and nothing may grow.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::daemon::Daemon;
use super::program;
use super::usage::ProcessUsage;
use super::wire::{Address, Connection};
use crate::chart::Chart;

const COMMANDS: u64 = 1_000_000;
const CLIENTS: u64 = 4;
const SAMPLE_EVERY: Duration = Duration::from_secs(10);
const FOLDER: &str = "target/volume";

pub(super) fn run() -> Result<()> {
    fs::create_dir_all(FOLDER)?;
    let program = program::testchild()?;
    let program = program.to_str().context("the path of testchild is not UTF-8")?;
    // Fewer than by default, so that old ones are forgotten from early on.
    let serve = ["serve", "--no-keeper", "--keep-processes", "1000"];
    let daemon = Daemon::start_as(Command::new(program::lastbyte()?), &serve)?;
    let (next, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let begun = Instant::now();
    let samples = thread::scope(|scope| -> Result<_> {
        let watcher = scope.spawn(|| watch(daemon.pid(), begun, &is_over));
        let clients: Vec<_> =
            (0..CLIENTS).map(|_| scope.spawn(|| client(&daemon.unix(), program, &next))).collect();
        let done: Result<()> =
            clients.into_iter().try_for_each(|one| one.join().expect("a client panicked"));
        is_over.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        let samples = watcher.join().expect("the watcher panicked")?;
        done.map(|()| samples)
    })?;
    let took = begun.elapsed().as_secs_f64();
    println!("volume: {COMMANDS} commands in {took:.0} s, each with its output and its exit code");
    report(&samples)
}

/// Runs commands until all have run; each prints its number and exits with a part of it.
fn client(address: &Address, program: &str, next: &AtomicU64) -> Result<()> {
    let mut connection = Connection::open(address)?;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= COMMANDS {
            return Ok(());
        }
        let (text, code) = (format!("command {number} of many"), number % 200);
        let body = format!(
            r#"{{"command":["{program}","print","{text}","then","exit","{code}"],"wait":{{"exit":true}}}}"#
        );
        let answer: Value = serde_json::from_slice(&connection.post("/v1/processes", &body)?)?;
        let head = answer["output"]["content"]["head"].as_str();
        ensure!(head.map(str::trim_end) == Some(&text), "number {number}: wrong output: {answer}");
        let status = &answer["process"]["ending"]["status"];
        ensure!(status["code"] == code, "number {number}: wrong exit code: {answer}");
    }
}

/// Minutes, and what the server uses at each.
fn watch(pid: u32, begun: Instant, is_over: &AtomicBool) -> Result<Vec<(f64, ProcessUsage)>> {
    let mut samples = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        samples.push((begun.elapsed().as_secs_f64() / 60.0, ProcessUsage::read(pid)?));
        thread::park_timeout(SAMPLE_EVERY);
    }
    Ok(samples)
}

fn report(samples: &[(f64, ProcessUsage)]) -> Result<()> {
    let minutes: Vec<f64> = samples.iter().map(|(minute, _)| *minute).collect();
    for (name, title, value) in [
        ("memory", "Memory (MB)", (|it| it.memory as f64 / 1e6) as fn(&ProcessUsage) -> f64),
        ("descriptors", "Descriptors", |it| it.descriptors as f64),
    ] {
        let values: Vec<f64> = samples.iter().map(|(_, usage)| value(usage)).collect();
        let at = |share: usize| values[(values.len() - 1) * share / 4];
        println!("  {title}, at quarters: {:?}", [0, 1, 2, 3, 4].map(|share| at(share).round()));
        let svg = Chart::over_minutes(title, &[("lastbyte", values)], &minutes).to_svg();
        fs::write(Path::new(FOLDER).join(name).with_extension("svg"), svg)?;
    }
    println!("  the charts are in {FOLDER}");
    Ok(())
}
