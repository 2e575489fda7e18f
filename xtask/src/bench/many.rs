//! One `stop` of two thousand processes.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lastbyte_sys::cgroup::{Cgroup, ParentCgroup, probe};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};

use super::daemon::Daemon;
use super::samples::Samples;
use super::wire::Connection;

const PROCESSES: usize = 2000;
const ROUNDS: usize = 5;

pub(super) fn run() -> Result<()> {
    let daemon = Daemon::start()?;
    let cgroups = probe().ok().map(|folder| ParentCgroup::make(&folder)).transpose()?;
    let (mut bare, mut by_cgroup, mut stops) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(kill_groups()?);
        by_cgroup.extend(cgroups.as_ref().map(kill_by_cgroup).transpose()?);
        stops.push(stop(&daemon)?);
    }
    println!(
        "many: {PROCESSES} sleeping processes are stopped, in turn with kills without a server"
    );
    let stops = Samples::new(stops);
    let floors = [("killpg and wait, no proof", bare), ("the same kill by cgroup", by_cgroup)];
    for (what, times) in floors.into_iter().filter(|(_, times)| !times.is_empty()) {
        let floor = Samples::new(times);
        println!("  {}: floor: {what}", spread(&floor));
        println!("  {:.2} of it: one call of stop (aim: at most 2)", stops.ratio_to(&floor));
    }
    println!("  {}: one call of stop", spread(&stops));
    Ok(())
}

fn spread(times: &Samples) -> String {
    let [least, median, most] =
        [0.0, 0.5, 1.0].map(|share| times.quantile(share).as_secs_f64() * 1e3);
    format!("{median:6.0} ms ({least:.0} to {most:.0})")
}

/// TERM to each group, then a wait for each leader: a kill without proof.
fn kill_groups() -> Result<Duration> {
    let mut children = sleepers()?;
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

/// What a proof needs at least: each is alone in a cgroup, whose members are listed, opened and
/// signalled, and which is empty afterwards.
fn kill_by_cgroup(parent: &ParentCgroup) -> Result<Duration> {
    let mut children = sleepers()?;
    let cgroups = (0..PROCESSES as u64).map(|number| parent.cgroup(number));
    let cgroups: Vec<Cgroup> = cgroups.collect::<Result<_, _>>()?;
    for (child, cgroup) in children.iter().zip(&cgroups) {
        fs::write(cgroup.folder().join("cgroup.procs"), child.id().to_string())?;
    }
    let begun = Instant::now();
    for cgroup in &cgroups {
        for pid in fs::read_to_string(cgroup.folder().join("cgroup.procs"))?.lines() {
            let pid = Pid::from_raw(pid.parse()?).context("no pid")?;
            pidfd_send_signal(pidfd_open(pid, PidfdFlags::empty())?, Signal::TERM)?;
        }
    }
    for child in &mut children {
        child.wait()?;
    }
    for cgroup in &cgroups {
        let events = fs::read_to_string(cgroup.folder().join("cgroup.events"))?;
        ensure!(events.starts_with("populated 0"), "a cgroup is not empty: {events}");
    }
    let time = begun.elapsed();
    cgroups.iter().try_for_each(Cgroup::remove)?;
    Ok(time)
}

fn sleepers() -> Result<Vec<Child>> {
    let sleeper = || {
        let mut command = Command::new("sleep");
        command.arg("3600").process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::null()).spawn()
    };
    Ok((0..PROCESSES).map(|_| sleeper()).collect::<Result<_, _>>()?)
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
