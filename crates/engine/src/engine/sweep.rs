//! Forgets processes after each ending and every minute, never as a side effect of anything else.

use std::sync::{Arc, Weak};
use std::time::Duration;

use lastbyte_sys::memory;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until, timeout};

use super::retention::{Candidate, oldest_first};
use super::{Engine, Inner};
use crate::Process;

const EVERY: Duration = Duration::from_secs(60);
/// While records wait for a failing disk.
const IN_TROUBLE: Duration = Duration::from_secs(1);
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
const UNDER_PRESSURE: Duration = Duration::from_millis(20);
/// When so many fewer processes are known than before, memory is given back to the machine: the
/// allocator keeps what lies between blocks in use.
const MANY: usize = 1_000;

/// Sweeps until the engine is gone, without keeping it alive.
pub(super) async fn keep_sweeping(engine: Weak<Inner>, ended: Arc<Notify>) {
    let mut every = EVERY;
    let mut most = 0;
    loop {
        // Sweep in either case.
        _ = timeout(every, ended.notified()).await;
        let Some(inner) = engine.upgrade() else { return };
        let engine = Engine { inner };
        let known = || engine.inner.processes().all().count();
        most = most.max(known());
        engine.forget_what_is_due(Instant::now());
        let fewer = most - known().min(most);
        // A sweep takes time for every process. Endings can wait a second for theirs. A disk that
        // fills up notifies at every step, and cannot wait.
        let pause = if engine.inner.disk.excess() > 0 { UNDER_PRESSURE } else { AT_MOST_EVERY };
        let journal = engine.inner.journal.clone();
        let cgroups = engine.inner.trees.cgroups().cloned();
        drop(engine);
        every = EVERY;
        if let Some(journal) = journal {
            let state = journal.state();
            journal.maintain().await;
            if state.borrow().trouble.is_some() {
                every = IN_TROUBLE;
            }
        }
        if let Some(cgroups) = cgroups {
            // Last, when nothing of the engine is held. After a panic, the next sweep tries again.
            _ = spawn_blocking(move || cgroups.reclaim()).await;
        }
        if fewer >= MANY {
            most -= fewer;
            _ = spawn_blocking(memory::trim).await; // as above
        }
        sleep_until(Instant::now() + pause).await;
    }
}

impl Engine {
    /// Forgets what the retention rule gives up at this time, and removes cgroups that are not needed.
    pub fn sweep(&self, now: Instant) {
        self.forget_what_is_due(now);
        self.inner.trees.cgroups().iter().for_each(|cgroups| cgroups.reclaim());
    }

    fn forget_what_is_due(&self, now: Instant) {
        self.inner.processes().drop_ended_from_index();
        for id in self.inner.settings.retention.forget(self.candidates(now)) {
            // Ignore one that was forgotten meanwhile, or whose file cannot be removed.
            _ = self.forget(id);
        }
        self.give_back_cgroups();
        self.inner.journal.iter().for_each(|journal| journal.write());
        if self.inner.disk.excess() > 0 {
            self.make_room(now);
        }
    }

    fn candidates(&self, now: Instant) -> Vec<Candidate> {
        self.inner.processes().all().filter_map(|process| candidate(process, now)).collect()
    }

    /// Forgets ended processes, oldest first; then cuts every running log to its head and tail.
    fn make_room(&self, now: Instant) {
        for id in oldest_first(self.candidates(now), self.inner.disk.excess()) {
            _ = self.forget(id); // as above
        }
        if self.inner.disk.excess() > 0 {
            self.inner.processes().all().for_each(Process::squeeze);
        }
    }

    /// Detects that survivors which held no pipe have exited.
    fn give_back_cgroups(&self) {
        let all: Vec<Process> = self.inner.processes().all().cloned().collect();
        for process in all.iter().filter(|process| process.snapshot().ending().is_some()) {
            process.tree().give_back_if_empty();
        }
    }
}

fn candidate(process: &Process, now: Instant) -> Option<Candidate> {
    let snapshot = process.snapshot();
    let ending = snapshot.ending().filter(|_| !snapshot.log_open)?;
    Some(Candidate {
        id: process.id(),
        session: process.spec().session.clone(),
        age: process.age_from().age(ending.times.known_after(), now),
        bytes: process.disk_bytes(),
    })
}
