//! What ran and what was wrong.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::job::Job;

#[derive(Default)]
pub(crate) struct Tally(Mutex<Counts>);

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) kills: u64,
    pub(crate) processes: BTreeMap<&'static str, u64>,
    /// Kinds that this machine cannot run.
    pub(super) not_run: BTreeMap<&'static str, u64>,
    pub(crate) bytes: u64,
    /// How often each job that records its runs should have run: once, never (`0..=0`), or at most once.
    pub(super) runs: BTreeMap<String, RangeInclusive<usize>>,
    /// Starts with a key that had been carried out before they were cut off and sent again.
    pub(super) repeated: u64,
    /// Starts without a key that were cut off: processes that were found, and that there is none.
    pub(super) found: u64,
    pub(super) never: u64,
    pub(super) app_servers_killed: u64,
    pub(super) events: u64,
    pub(super) gaps: u64,
    pub(crate) wrong: Vec<String>,
}

impl Tally {
    pub(crate) fn ran(&self, kind: &'static str, bytes: u64) {
        let mut counts = self.lock();
        *counts.processes.entry(kind).or_default() += 1;
        counts.bytes += bytes;
    }

    /// Notes how often a job should run, given whether it was started.
    pub(super) fn expect_runs(&self, job: &Job, started: bool) {
        let least = usize::from(started && !job.output.may_be_cut);
        let runs = least..=usize::from(started);
        if job.says_that_it_ran {
            self.lock().runs.insert(job.name.clone(), runs);
        }
    }

    /// Compares with what the commands wrote: a line for each that ran.
    pub(super) fn check_runs(&self, written: &str) {
        let mut found: BTreeMap<&str, usize> = BTreeMap::new();
        for name in written.lines() {
            *found.entry(name).or_default() += 1;
        }
        let expected = std::mem::take(&mut self.lock().runs);
        for (name, runs) in expected {
            let count = found.get(name.as_str()).copied().unwrap_or(0);
            if !runs.contains(&count) {
                self.wrong_at(&format!("job {name}"), &format!("ran {count} times, not {runs:?}"));
            }
        }
    }

    pub(super) fn not_run(&self, kind: &'static str) {
        *self.lock().not_run.entry(kind).or_default() += 1;
    }

    pub(super) fn repeated(&self) {
        self.lock().repeated += 1;
    }

    pub(super) fn cut_off(&self, found: bool) {
        let mut counts = self.lock();
        *(if found { &mut counts.found } else { &mut counts.never }) += 1;
    }

    pub(super) fn wrong(&self, job: &Job, id: &str, what: String) {
        let key = if job.request.key.is_some() { "with a key" } else { "without a key" };
        self.wrong_at(&format!("job {} ({}, {key}) {id}", job.name, job.kind), &what);
    }

    pub(crate) fn wrong_at(&self, place: &str, what: &str) {
        self.lock().wrong.push(format!("{}: {what}", place.trim_end()));
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
