//! Which tokens of pages are in use.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// How many requests and connections use a token now, and since when none does.
#[derive(Debug)]
pub(super) struct Usage(Mutex<(usize, Instant)>);

impl Default for Usage {
    fn default() -> Self {
        Self(Mutex::new((0, Instant::now())))
    }
}

impl Usage {
    /// `None` while it is in use.
    pub(super) fn unused_since(&self) -> Option<Instant> {
        let (count, since) = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (count == 0).then_some(since)
    }

    fn add(&self, change: impl FnOnce(usize) -> usize) {
        let mut usage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *usage = (change(usage.0), Instant::now());
    }
}

/// A request or connection that uses a token.
#[derive(Debug)]
pub(crate) struct InUse {
    usage: Arc<Usage>,
    /// Told when it is not used any more.
    due: Arc<Notify>,
}

impl InUse {
    pub(super) fn begin(usage: &Arc<Usage>, due: &Arc<Notify>) -> Arc<Self> {
        usage.add(|count| count + 1);
        Arc::new(Self { usage: Arc::clone(usage), due: Arc::clone(due) })
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.usage.add(|count| count - 1);
        self.due.notify_one();
    }
}
