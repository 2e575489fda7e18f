//! Forgetting, at each ending and each minute, never as a side effect of anything else.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

use super::retention::{Candidate, oldest_first};
use super::{Engine, Inner};
use crate::Process;

const EVERY: Duration = Duration::from_secs(60);
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
const UNDER_PRESSURE: Duration = Duration::from_millis(20);

/// Sweeps until the engine is gone, without keeping it from going.
pub(super) async fn keep_sweeping(engine: Weak<Inner>, ended: Arc<Notify>) {
    loop {
        // Either way it is time to look.
        _ = timeout(EVERY, ended.notified()).await;
        let Some(inner) = engine.upgrade() else { return };
        let engine = Engine { inner };
        engine.sweep(SystemTime::now());
        // A look costs time for every process there is. Endings can wait a second for theirs; a
        // disk that fills up calls at every step, and cannot.
        let pause = if engine.inner.disk.excess() > 0 { UNDER_PRESSURE } else { AT_MOST_EVERY };
        let journal = engine.inner.journal.clone();
        drop(engine);
        if let Some(journal) = journal {
            journal.tend().await;
        }
        sleep_until(Instant::now() + pause).await;
    }
}

impl Engine {
    /// Forgets what the retention rule gives up at this time.
    pub fn sweep(&self, now: SystemTime) {
        let candidates = self.inner.registry().all().filter_map(candidate).collect();
        for id in self.inner.settings.retention.forget(candidates, now) {
            // One that was forgotten meanwhile, or whose file is stuck, is no matter of a sweep.
            _ = self.forget(id);
        }
        self.reclaim_leaves();
        self.inner.journal.iter().for_each(|journal| journal.write());
        if self.inner.disk.excess() > 0 {
            self.make_room();
        }
    }

    /// Ended logs go first, oldest first; then every running one keeps only its ends.
    fn make_room(&self) {
        let candidates = self.inner.registry().all().filter_map(candidate).collect();
        for id in oldest_first(candidates, self.inner.disk.excess()) {
            _ = self.forget(id); // as above
        }
        if self.inner.disk.excess() > 0 {
            self.inner.registry().all().for_each(Process::squeeze);
        }
    }

    /// Survivors that hold no pipe go unnoticed; here it is seen that they have gone.
    fn reclaim_leaves(&self) {
        let all: Vec<Process> = self.inner.registry().all().cloned().collect();
        for process in all.iter().filter(|process| process.snapshot().ending().is_some()) {
            process.tree().give_back_if_empty();
        }
        self.inner.trees.reclaim();
    }
}

fn candidate(process: &Process) -> Option<Candidate> {
    let snapshot = process.snapshot();
    let ending = snapshot.ending().filter(|_| !snapshot.log_open)?;
    Some(Candidate {
        id: process.id(),
        session: process.about().session.clone(),
        ended: ending.times.ended,
        bytes: process.disk_bytes(),
    })
}
