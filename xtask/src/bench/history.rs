//! What ended processes cost: the time of a look at what runs, and memory, also once they are forgotten.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::daemon::Daemon;
use super::program;
use super::samples::{WARM_UP, in_turn};
use super::usage::ProcessUsage;
use super::wire::{Connection, RUN_TRUE};

/// Five times as many as a server keeps by default.
const ENDED: usize = 50_000;
/// One-time allocations happen before the count.
const FIRST: usize = 500;
/// As many as retention keeps of one session.
const KEPT: usize = 200;
const SERVE: [&str; 4] = ["serve", "--no-keeper", "--keep-processes", "60000"];
const ROUNDS: usize = 500;
const LOOKS: [(&str, &str); 4] = [
    ("what runs", "/v1/processes?phase=running"),
    ("one session", "/v1/processes?session=one"),
    ("one name", "/v1/processes?name=web"),
    ("Coder: lookup by token", "/api/v0/processes/tokens/one"),
];

pub(super) fn run() -> Result<()> {
    println!("history: the same look, after 0 and after {ENDED} ended processes, in turn");
    let start = || Daemon::start_as(Command::new(program::lastbyte()?), &SERVE);
    let servers = [start()?, start()?];
    let old = &mut Connection::open(&servers[1].unix())?;
    let memory = || Ok::<_, anyhow::Error>(ProcessUsage::read(servers[1].pid())?.memory as f64);
    let mut ended: Vec<String> = (0..FIRST).map(|_| old.start(RUN_TRUE)).collect::<Result<_>>()?;
    let before = memory()?;
    for _ in 0..ENDED {
        ended.push(old.start(RUN_TRUE)?);
    }
    println!("  memory of each that ended: {:.1} KB", (memory()? - before) / ENDED as f64 / 1e3);
    // Only now: the server closes connections that wait too long.
    let new = &mut Connection::open(&servers[0].unix())?;
    for connection in [&mut *new, &mut *old] {
        connection
            .start(r#"{"command":["sleep","600"],"session":"one","name":"web","key":"one"}"#)?;
    }
    for (what, path) in LOOKS {
        let timed = |connection: &mut Connection| -> Result<Duration> {
            let begun = Instant::now();
            let answer = connection.get(path)?;
            let time = begun.elapsed();
            ensure!(answer.windows(4).any(|text| text == b"\"id\""), "nothing was found at {path}");
            Ok(time)
        };
        let [before, after] = in_turn(WARM_UP, ROUNDS, || Ok([timed(new)?, timed(old)?]))?;
        println!("  {:.2}: {what}: {before}; {after}", after.ratio_to(&before));
    }
    for id in &ended[..ended.len() - KEPT] {
        old.delete(&format!("/v1/processes/{id}"))?;
    }
    // The next ending lets the server sweep.
    old.start(RUN_TRUE)?;
    thread::sleep(Duration::from_secs(5));
    println!("  memory once all but {KEPT} are forgotten: {:.1} MB", memory()? / 1e6);
    Ok(())
}
