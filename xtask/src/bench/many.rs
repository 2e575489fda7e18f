//! One `stop` of two thousand processes.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use super::daemon::Daemon;
use super::samples::Samples;
use super::wire::Connection;

const PROCESSES: usize = 2000;
const ROUNDS: usize = 5;

pub(super) fn run() -> Result<()> {
    let daemon = Daemon::start()?;
    let (mut floor, mut stops) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floor.push(kill_groups()?);
        stops.push(stop(&daemon)?);
    }
    let (floor, stops) = (Samples::new(floor), Samples::new(stops));
    println!(
        "many: {PROCESSES} sleeping processes are stopped, in turn with a bare kill of each group"
    );
    for (what, times) in [("floor: killpg and wait", &floor), ("one call of stop", &stops)] {
        let [least, median, most] =
            [0.0, 0.5, 1.0].map(|share| times.quantile(share).as_secs_f64() * 1e3);
        println!("  {median:6.0} ms ({least:.0} to {most:.0}): {what}");
    }
    println!("  ratio  {:.2} (aim: at most 2)", stops.ratio_to(&floor));
    Ok(())
}

/// TERM to each group, then a wait for each leader: a kill without proof.
fn kill_groups() -> Result<Duration> {
    let sleeper = || {
        let mut command = Command::new("sleep");
        command.arg("3600").process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).spawn()
    };
    let mut children: Vec<Child> = (0..PROCESSES).map(|_| sleeper()).collect::<Result<_, _>>()?;
    let begun = Instant::now();
    for child in &children {
        let pid = Pid::from_raw(child.id().cast_signed()).context("no pid")?;
        kill_process_group(pid, Signal::TERM)?;
    }
    for child in &mut children {
        child.wait()?;
    }
    Ok(begun.elapsed())
}

fn stop(daemon: &Daemon) -> Result<Duration> {
    let mut connection = Connection::open(&daemon.unix())?;
    let started = (0..PROCESSES).map(|_| connection.start(r#"{"command":["sleep","3600"]}"#));
    let ids: Vec<String> = started.collect::<Result<_>>()?;
    let body = json!({ "select": { "ids": ids } }).to_string();
    let begun = Instant::now();
    let answer: Value = serde_json::from_slice(&connection.post("/v1/stop", &body)?)?;
    let time = begun.elapsed();
    let outcomes = answer["processes"].as_array().context("no processes")?;
    let is_gone = |outcome: &&Value| outcome["proof"]["left"] == json!([]);
    let gone = outcomes.iter().filter(is_gone).count();
    ensure!(gone == PROCESSES, "{gone} are gone instead of {PROCESSES}: {:.300}", answer);
    connection.post("/v1/forget", &body)?;
    Ok(time)
}
