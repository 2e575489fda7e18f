//! Forgetting, at each ending and each minute, never as a side effect of anything else.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use tokio::time::timeout;

use super::{Engine, Inner};
use crate::Process;
use crate::retention::Candidate;

const EVERY: Duration = Duration::from_secs(60);

/// Sweeps until the engine is gone.
pub(super) async fn keep_sweeping(engine: Weak<Inner>) {
    while let Some(inner) = engine.upgrade() {
        let engine = Engine { inner };
        // Either way it is time to look.
        _ = timeout(EVERY, engine.inner.swept.notified()).await;
        engine.sweep(SystemTime::now());
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
    }
}

impl Inner {
    pub(super) fn ended(self: &Arc<Self>) {
        self.swept.notify_one();
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
