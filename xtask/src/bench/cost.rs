//! What a program costs while it runs.

use std::fmt;
use std::fs;

use anyhow::{Context, Result};

/// What a program uses at one instant.
pub(super) struct Cost {
    pub(super) memory: u64,
    pub(super) threads: u64,
    pub(super) descriptors: u64,
}

impl Cost {
    pub(super) fn of(pid: u32) -> Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let field = |name: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|rest| rest.split_ascii_whitespace().next());
            number.and_then(|number| number.parse().ok()).with_context(|| format!("no {name}"))
        };
        Ok(Self {
            memory: field("VmRSS:")? * 1024,
            threads: field("Threads:")?,
            descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64,
        })
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { memory, threads, descriptors } = self;
        let memory = *memory as f64 / 1e6;
        write!(out, "{memory:.1} MB, {threads} threads, {descriptors} descriptors")
    }
}
