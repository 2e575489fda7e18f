//! How many of something are under way, for whoever has to wait until none is.

use std::sync::Arc;

use tokio::sync::watch;

/// A count that goes up with each [`InFlight::begin`] and down when what that returned is dropped.
#[derive(Debug, Clone)]
pub(crate) struct InFlight {
    count: Arc<watch::Sender<usize>>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Ongoing {
    count: Arc<watch::Sender<usize>>,
}

impl InFlight {
    pub(crate) fn new() -> Self {
        Self { count: Arc::new(watch::Sender::new(0)) }
    }

    pub(crate) fn begin(&self) -> Ongoing {
        self.count.send_modify(|count| *count += 1);
        Ongoing { count: Arc::clone(&self.count) }
    }

    /// Waits until none is.
    pub(crate) async fn until_none(&self) {
        // The sender is here, so this only ever ends with none.
        _ = self.count.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for Ongoing {
    fn drop(&mut self) {
        self.count.send_modify(|count| *count -= 1);
    }
}
