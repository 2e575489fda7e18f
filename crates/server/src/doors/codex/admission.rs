//! Reading requests no faster than they can be handled.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::send_queue::SendQueue;

/// A longer message is not read. The largest useful one fills a command's input queue, which is
/// 22 MiB in base64.
pub const MAX_MESSAGE_BYTES: usize = 128 << 20;
/// Commands that may wait for their start before no further request is read. Running commands do not
/// count.
const MAX_STARTING: usize = 128;

/// What a transport gives a connection.
pub(super) trait Incoming: Send {
    /// The next message; `None` when there are no more. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Option<Vec<u8>>> + Send;
}

/// Reads one message after the other.
#[derive(Debug)]
pub(super) struct Admission<I> {
    incoming: I,
    send_queue: SendQueue,
    starts: Arc<Semaphore>,
    /// For the next command to be started: acquired before it is known whether there is one.
    permit: Option<OwnedSemaphorePermit>,
}

impl<I: Incoming> Admission<I> {
    pub(super) fn new(incoming: I, send_queue: SendQueue) -> Self {
        let starts = Arc::new(Semaphore::new(MAX_STARTING));
        Self { incoming, send_queue, starts, permit: None }
    }

    /// The next message; `None` when there are no more. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        self.send_queue.until_requests_fit().await;
        if self.permit.is_none() {
            // Nobody closes the semaphore.
            self.permit = Arc::clone(&self.starts).acquire_owned().await.ok();
        }
        self.incoming.next().await
    }

    /// The permit to start the command that the last message asks for.
    pub(super) fn take_permit(&mut self) -> Option<OwnedSemaphorePermit> {
        self.permit.take()
    }
}
