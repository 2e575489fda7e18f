//! The resources that a process uses at one moment.

use std::fmt;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

pub(super) struct ProcessUsage {
    pub(super) memory: u64,
    pub(super) threads: u64,
    pub(super) descriptors: u64,
}

impl ProcessUsage {
    pub(super) fn read(pid: u32) -> Result<Self> {
        Ok(Self {
            memory: status_field(pid, "VmRSS:")? * 1024,
            threads: status_field(pid, "Threads:")?,
            descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64,
        })
    }
}

/// What a process has used of the processors, with its threads, without its children.
pub(super) fn processor_time(pid: u32) -> Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("no name")?;
    let ticks = fields.split_ascii_whitespace().skip(11).take(2).map(str::parse::<u64>);
    let ticks: u64 = ticks.sum::<Result<u64, _>>()?;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

/// A number of `/proc/PID/status`.
pub(super) fn status_field(pid: u32, name: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_ascii_whitespace().next());
    number.and_then(|number| number.parse().ok()).with_context(|| format!("no {name}"))
}

impl fmt::Display for ProcessUsage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory, threads, descriptors } = self;
        let memory = *memory as f64 / 1e6;
        write!(out, "{memory:.1} MB, {threads} threads, {descriptors} descriptors")
    }
}
