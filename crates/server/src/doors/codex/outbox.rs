//! What is on its way to the client, bounded by bytes that it has not taken.
//!
//! Output waits for room before it is put here, so that a client that reads nothing costs its own
//! commands and a few megabytes. Answers to requests never wait, so that nothing is in front of a
//! `terminate`; instead no further request is taken in while too many of them are unread.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

/// Output that may lie here. One larger parcel has it all to itself.
const OUTPUT_BYTES: usize = 4 << 20;
/// Answers, and requests that wait for their turn, before the client has to wait.
const REQUEST_BYTES: usize = 4 << 20;

/// The near end; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Outbox {
    /// Unbounded: what goes in is counted by the two below.
    parcels: mpsc::UnboundedSender<Parcel>,
    output_room: Arc<Semaphore>,
    request_bytes: watch::Sender<usize>,
}

/// The far end, which a transport empties.
pub(super) type Parcels = mpsc::UnboundedReceiver<Parcel>;

/// A message with the room it takes, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) text: String,
    _room: Room,
}

#[derive(Debug)]
enum Room {
    Output { _permit: Option<OwnedSemaphorePermit> },
    Answer { _held: Held },
}

/// Bytes that count as not yet dealt with.
#[derive(Debug)]
pub(super) struct Held {
    bytes: usize,
    request_bytes: watch::Sender<usize>,
}

impl Outbox {
    pub(super) fn new() -> (Self, Parcels) {
        let (parcels, receiver) = mpsc::unbounded_channel();
        let output_room = Arc::new(Semaphore::new(OUTPUT_BYTES));
        (Self { parcels, output_room, request_bytes: watch::Sender::new(0) }, receiver)
    }

    /// Puts an answer on its way.
    pub(super) fn answer(&self, text: String) {
        self.send(self.answer_parcel(text));
    }

    /// An answer that is to be sent in a moment.
    pub(super) fn answer_parcel(&self, text: String) -> Parcel {
        let held = self.hold(text.len());
        Parcel { text, _room: Room::Answer { _held: held } }
    }

    /// Waits until there is room for this output.
    pub(super) async fn output_parcel(&self, text: String) -> Parcel {
        // At most the constant above, which is far below the limit of the type.
        let bytes = text.len().min(OUTPUT_BYTES) as u32;
        // Nobody closes the semaphore.
        let permit = Arc::clone(&self.output_room).acquire_many_owned(bytes).await.ok();
        Parcel { text, _room: Room::Output { _permit: permit } }
    }

    /// Puts a parcel on its way, behind all others.
    pub(super) fn send(&self, parcel: Parcel) {
        // A client that is gone gets nothing; its connection is about to notice.
        _ = self.parcels.send(parcel);
    }

    /// Counts the bytes of a request that has to wait.
    pub(super) fn hold(&self, bytes: usize) -> Held {
        self.request_bytes.send_modify(|sum| *sum += bytes);
        Held { bytes, request_bytes: self.request_bytes.clone() }
    }

    /// Waits until the client may be heard again. Cancel-safe.
    pub(super) async fn until_requests_fit(&self) {
        // The sender is here, so this only ever ends with room.
        _ = self.request_bytes.subscribe().wait_for(|sum| *sum < REQUEST_BYTES).await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.request_bytes.send_modify(|sum| *sum -= self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn now<T>(future: impl Future<Output = T>) -> Option<T> {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn output_waits_for_room_and_answers_do_not() {
        let (outbox, mut parcels) = Outbox::new();
        let much = "o".repeat(OUTPUT_BYTES - 1);
        outbox.send(now(outbox.output_parcel(much)).expect("there is room for it"));
        assert!(now(outbox.output_parcel("too much".into())).is_none());
        outbox.answer("an answer".into());
        drop(parcels.try_recv().unwrap());
        assert!(now(outbox.output_parcel("room again".into())).is_some());
        assert_eq!(parcels.try_recv().unwrap().text, "an answer");
    }

    #[test]
    fn a_parcel_that_is_larger_than_all_room_is_alone() {
        let (outbox, _parcels) = Outbox::new();
        let parcel = now(outbox.output_parcel("o".repeat(2 * OUTPUT_BYTES)));
        assert!(now(outbox.output_parcel("o".into())).is_none());
        drop(parcel);
        assert!(now(outbox.output_parcel("o".into())).is_some());
    }

    #[test]
    fn requests_are_not_taken_in_while_too_many_answers_are_unread() {
        let (outbox, mut parcels) = Outbox::new();
        let held = outbox.hold(REQUEST_BYTES - 2);
        outbox.answer("a".into());
        assert!(now(outbox.until_requests_fit()).is_some());
        outbox.answer("b".into());
        assert!(now(outbox.until_requests_fit()).is_none());
        drop(parcels.try_recv());
        assert!(now(outbox.until_requests_fit()).is_some());
        drop(held);
    }
}
