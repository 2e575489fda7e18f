//! Forgetting, at each ending and each minute, never as a side effect of anything else.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;
use tokio::time::timeout;

use super::{Engine, Inner};
use crate::Process;
use crate::retention::Candidate;

const EVERY: Duration = Duration::from_secs(60);

/// Sweeps until the engine is gone, without keeping it from going.
pub(super) async fn keep_sweeping(engine: Weak<Inner>, ended: Arc<Notify>) {
    loop {
        // Either way it is time to look.
        _ = timeout(EVERY, ended.notified()).await;
        let Some(inner) = engine.upgrade() else { return };
        Engine { inner }.sweep(SystemTime::now());
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
        bytes: snapshot.extent.len - snapshot.extent.dropped.bytes(),
    })
}
