//! Where requests come in: not faster than they can be dealt with.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::outbox::Outbox;
use super::transport::Incoming;

/// Commands that may wait for their start before no further request is taken in. Those that run do
/// not count.
const MOST_STARTING: usize = 128;

/// Takes messages in, one after the other.
#[derive(Debug)]
pub(super) struct Intake<I> {
    incoming: I,
    outbox: Outbox,
    slots: Arc<Semaphore>,
    /// For the next command that is to be started; taken before anything is known of it.
    slot: Option<OwnedSemaphorePermit>,
}

impl<I: Incoming> Intake<I> {
    pub(super) fn new(incoming: I, outbox: Outbox) -> Self {
        let slots = Arc::new(Semaphore::new(MOST_STARTING));
        Self { incoming, outbox, slots, slot: None }
    }

    /// The next message; `None` when there are no more. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        self.outbox.until_requests_fit().await;
        if self.slot.is_none() {
            // Nobody closes the semaphore.
            self.slot = Arc::clone(&self.slots).acquire_owned().await.ok();
        }
        self.incoming.next().await
    }

    /// The slot for a command that came with the last message; at once, then.
    pub(super) fn take_slot(&mut self) -> Option<OwnedSemaphorePermit> {
        self.slot.take()
    }
}
