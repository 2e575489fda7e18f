//! All connections of a door: how many there are, and that they are to end.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    open: watch::Sender<bool>,
    permits: Arc<Semaphore>,
}

/// Each takes some descriptors.
const MAX_CONNECTIONS: u32 = 1024;

impl Connections {
    pub(crate) fn new() -> Self {
        let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS as usize));
        Self { open: watch::Sender::new(true), permits }
    }

    /// Closes every connection, and waits until they are closed.
    pub(crate) async fn close(&self) {
        self.open.send_replace(false);
        // Nobody closes the semaphore, so this ends when there are no connections.
        _ = self.permits.acquire_many(MAX_CONNECTIONS).await;
    }

    /// Waits until they are to end. Cancel-safe.
    pub(crate) async fn closed(&self) {
        // The sender is here, so this only ever ends when they are.
        _ = self.open.subscribe().wait_for(|open| !open).await;
    }

    /// Kept while a connection lasts; `None` when there are too many.
    pub(crate) fn permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }
}
