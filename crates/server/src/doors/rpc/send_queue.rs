//! Messages on their way to the client, bounded by the bytes that it has not taken.
//!
//! Output waits for space before it is queued, so a client that reads nothing slows only its own
//! commands and costs a megabyte or two. Answers never wait, so that nothing delays a `terminate`;
//! instead no further request is read while too many answers are unread.
//!
//! A short message to a client on a stream is written by the task that sends it, if none waits before it
//! and the client can take it: waking the thread that writes takes longer than to write.

use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::io::{ReadWriteFlags, pwritev2};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::timeout;

/// Output that may be queued. One larger message may take it all.
const OUTPUT_BYTES: usize = 512 << 10;
/// Answers and pending requests before no further request is read.
const REQUEST_BYTES: usize = 1 << 20;
/// How long a client may take nothing at all before a closing connection gives up on it.
const STALL_LIMIT: Duration = Duration::from_secs(10);
/// The longest message that its sender writes itself: a pipe takes as much whole or not at all.
const SHORT: usize = 4096;

/// The sending end; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct SendQueue {
    /// Unbounded: what goes in is counted by the two below.
    messages: mpsc::UnboundedSender<QueuedMessage>,
    output_space: Arc<Semaphore>,
    request_bytes: watch::Sender<usize>,
    shortcut: Option<Arc<Shortcut>>,
}

/// The way around the queue to a client that gets lines on a stream.
#[derive(Debug)]
struct Shortcut {
    stream: OwnedFd,
    /// Messages that are not written yet. While there are any, others have to wait behind them.
    waiting: Mutex<usize>,
    delivered_bytes: watch::Sender<u64>,
}

/// A message with the space it takes, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct QueuedMessage {
    pub(crate) text: String,
    /// How many bytes of it were written already.
    sent: usize,
    /// One of them, by its kind.
    _space: (Option<OwnedSemaphorePermit>, Option<Share>),
}

/// A part of a sum, taken off it again when this is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    amount: usize,
    sum: watch::Sender<usize>,
}

/// The end that a transport empties. Dropped when everything was delivered, or nothing more can be.
#[derive(Debug)]
pub(crate) struct OutgoingMessages {
    pub(crate) messages: mpsc::UnboundedReceiver<QueuedMessage>,
    delivered_bytes: watch::Sender<u64>,
    shortcut: Option<Arc<Shortcut>>,
}

/// What the connection sees of the transport's progress: how many bytes it delivered so far.
#[derive(Debug)]
pub(crate) struct Progress(watch::Receiver<u64>);

pub(crate) fn channel() -> (SendQueue, OutgoingMessages, Progress) {
    channel_with(None)
}

/// To a client that gets each message as a line on this stream. The other end may be shared with
/// programs that expect it to block: nothing here changes that.
pub(crate) fn channel_of_lines(stream: OwnedFd) -> (SendQueue, OutgoingMessages, Progress) {
    channel_with(Some(stream))
}

fn channel_with(stream: Option<OwnedFd>) -> (SendQueue, OutgoingMessages, Progress) {
    let (sender, messages) = mpsc::unbounded_channel();
    let (delivered_bytes, progress) = watch::channel(0);
    let shortcut = stream.map(|stream| {
        let delivered_bytes = delivered_bytes.clone();
        Arc::new(Shortcut { stream, waiting: Mutex::new(0), delivered_bytes })
    });
    let send_queue = SendQueue {
        messages: sender,
        output_space: Arc::new(Semaphore::new(OUTPUT_BYTES)),
        request_bytes: watch::Sender::new(0),
        shortcut: shortcut.clone(),
    };
    (send_queue, OutgoingMessages { messages, delivered_bytes, shortcut }, Progress(progress))
}

impl SendQueue {
    /// Queues an answer.
    pub(crate) fn answer(&self, text: String) {
        self.send(self.answer_message(text));
    }

    /// An answer to be queued in a moment.
    pub(crate) fn answer_message(&self, text: String) -> QueuedMessage {
        let bytes = self.count_request(text.len());
        QueuedMessage { text, sent: 0, _space: (None, Some(bytes)) }
    }

    /// Waits until there is space for this output.
    pub(crate) async fn output_message(&self, text: String) -> QueuedMessage {
        // At most the constant above, which is far below the limit of the type.
        let bytes = text.len().min(OUTPUT_BYTES) as u32;
        // Nobody closes the semaphore.
        let permit = Arc::clone(&self.output_space).acquire_many_owned(bytes).await.ok();
        QueuedMessage { text, sent: 0, _space: (permit, None) }
    }

    pub(crate) fn send(&self, message: QueuedMessage) {
        // A client that is gone gets nothing; its connection is about to notice.
        let queue = |message| _ = self.messages.send(message);
        match &self.shortcut {
            Some(shortcut) => shortcut.send(message, queue),
            None => queue(message),
        }
    }

    /// Counts the bytes of a request until it is finished.
    pub(crate) fn count_request(&self, bytes: usize) -> Share {
        Share::new(&self.request_bytes, bytes)
    }

    /// Waits until another request may be read. Cancel-safe.
    pub(crate) async fn until_requests_fit(&self) {
        until_below(REQUEST_BYTES, &self.request_bytes).await;
    }

    /// Waits until nothing more can be delivered. Cancel-safe.
    pub(crate) async fn closed(&self) {
        self.messages.closed().await;
    }
}

impl Shortcut {
    /// Writes the message, or queues what is left of it.
    fn send(&self, mut message: QueuedMessage, queue: impl FnOnce(QueuedMessage)) {
        // Until it is queued: another message must not overtake it.
        let mut waiting = self.waiting();
        if *waiting == 0 && message.text.len() < SHORT {
            message.sent = self.write(&message.text);
            if message.sent > message.text.len() {
                return;
            }
        }
        *waiting += 1;
        queue(message);
    }

    /// Returns how many bytes of the line were written. An error is left to the thread that writes.
    fn write(&self, text: &str) -> usize {
        let line = [IoSlice::new(text.as_bytes()), IoSlice::new(b"\n")];
        // At the position of the stream.
        let written = pwritev2(&self.stream, &line, u64::MAX, ReadWriteFlags::NOWAIT).unwrap_or(0);
        if written > 0 {
            self.delivered_bytes.send_modify(|sum| *sum += written as u64);
        }
        written
    }

    fn waiting(&self) -> MutexGuard<'_, usize> {
        // Every update is complete in itself, so a poisoned lock is usable.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueuedMessage {
    /// What is to be written of it.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.text.as_bytes()[self.sent..]
    }
}

impl Share {
    pub(crate) fn new(sum: &watch::Sender<usize>, amount: usize) -> Self {
        sum.send_modify(|sum| *sum += amount);
        Self { amount, sum: sum.clone() }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.sum.send_modify(|sum| *sum -= self.amount);
    }
}

/// Waits until the sum of all shares is below this. Cancel-safe.
pub(crate) async fn until_below(most: usize, sum: &watch::Sender<usize>) {
    // The sender is here, so this only ever ends with space.
    _ = sum.subscribe().wait_for(|sum| *sum < most).await;
}

impl OutgoingMessages {
    /// This many messages are written completely.
    pub(crate) fn written(&self, count: usize) {
        self.shortcut.iter().for_each(|shortcut| *shortcut.waiting() -= count);
    }

    /// The client has taken this many bytes more.
    pub(crate) fn delivered(&self, count: usize) {
        self.delivered_bytes.send_modify(|sum| *sum += count as u64);
    }
}

impl Progress {
    /// Does this work, then waits until everything is delivered. Gives up on both when the client
    /// takes nothing for long.
    pub(crate) async fn finish(self, work: impl Future<Output = ()>) {
        let Self(mut bytes) = self;
        let mut over = bytes.clone();
        let mut work = pin!(async {
            work.await;
            while over.changed().await.is_ok() {}
        });
        while let Ok(Ok(())) = {
            tokio::select! {
                () = &mut work => return,
                delivered = timeout(STALL_LIMIT, bytes.changed()) => delivered,
            }
        } {}
        // Either that was the last byte, and the work is about to see it, or the client is stuck.
        _ = timeout(Duration::from_secs(1), work).await;
    }
}

#[cfg(test)]
mod tests {
    use std::io::{PipeReader, PipeWriter, Read, Write, pipe};

    use futures_util::FutureExt;

    use super::*;

    fn to_pipe() -> (PipeReader, PipeWriter, SendQueue, OutgoingMessages) {
        let (from, to) = pipe().unwrap();
        let (send_queue, outgoing, _) = channel_of_lines(to.try_clone().unwrap().into());
        (from, to, send_queue, outgoing)
    }

    fn queued(outgoing: &mut OutgoingMessages) -> Vec<String> {
        std::iter::from_fn(|| outgoing.messages.try_recv().ok()).map(|next| next.text).collect()
    }

    #[test]
    fn a_short_message_is_written_by_its_sender_and_a_long_one_is_not() {
        let (mut from, _to, send_queue, mut outgoing) = to_pipe();
        send_queue.answer("short".into());
        let long = "l".repeat(SHORT);
        send_queue.answer(long.clone());
        let mut line = [0; 6];
        from.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"short\n");
        assert_eq!(queued(&mut outgoing), [long]);
        assert_eq!(*outgoing.delivered_bytes.borrow(), 6);
    }

    #[test]
    fn nothing_overtakes_a_message_that_waits() {
        let (mut from, mut to, send_queue, mut outgoing) = to_pipe();
        // As much as a pipe holds.
        to.write_all(&vec![0; 64 << 10]).unwrap();
        send_queue.answer("waits".into());
        from.read_exact(&mut vec![0; 64 << 10]).unwrap();
        send_queue.answer("later".into());
        assert_eq!(queued(&mut outgoing), ["waits", "later"]);
        outgoing.written(1);
        send_queue.answer("last".into());
        assert_eq!(queued(&mut outgoing), ["last"]);
        outgoing.written(2);
        send_queue.answer("now".into());
        assert_eq!(queued(&mut outgoing), [""; 0]);
    }

    #[test]
    fn a_client_that_is_gone_is_left_to_the_thread_that_writes() {
        let (from, _to, send_queue, mut outgoing) = to_pipe();
        drop(from);
        send_queue.answer("into the void".into());
        assert_eq!(queued(&mut outgoing), ["into the void"]);
    }

    #[test]
    fn output_waits_for_space_and_answers_do_not() {
        let (send_queue, mut outgoing, _) = channel();
        let much = "o".repeat(OUTPUT_BYTES - 1);
        let message = send_queue.output_message(much).now_or_never();
        send_queue.send(message.expect("there is space for it"));
        assert!(send_queue.output_message("too much".into()).now_or_never().is_none());
        send_queue.answer("an answer".into());
        drop(outgoing.messages.try_recv().unwrap());
        assert!(send_queue.output_message("space again".into()).now_or_never().is_some());
        assert_eq!(outgoing.messages.try_recv().unwrap().text, "an answer");
    }

    #[test]
    fn a_message_that_is_larger_than_all_space_is_alone() {
        let (send_queue, _outgoing, _) = channel();
        let message = send_queue.output_message("o".repeat(2 * OUTPUT_BYTES)).now_or_never();
        assert!(send_queue.output_message("o".into()).now_or_never().is_none());
        drop(message);
        assert!(send_queue.output_message("o".into()).now_or_never().is_some());
    }

    #[test]
    fn requests_are_not_read_while_too_many_answers_are_unread() {
        let (send_queue, mut outgoing, _) = channel();
        let pending = send_queue.count_request(REQUEST_BYTES - 2);
        send_queue.answer("a".into());
        assert!(send_queue.until_requests_fit().now_or_never().is_some());
        send_queue.answer("b".into());
        assert!(send_queue.until_requests_fit().now_or_never().is_none());
        drop(outgoing.messages.try_recv());
        assert!(send_queue.until_requests_fit().now_or_never().is_some());
        drop(pending);
    }
}
