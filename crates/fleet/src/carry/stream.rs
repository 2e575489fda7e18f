//! One stream: from a socket to messages, and from messages to the socket.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_nats::{Client, Subject};
use bytes::{BufMut, Bytes, BytesMut};
use lastbyte_sys::socket::is_hung_up;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, interval_at, timeout};

use super::frame::{Frame, HEADER};

/// How far a sender may be ahead of what was read.
pub(super) const WINDOW: u64 = 1 << 20;
/// The bytes of one message. The limit of a broker is 1 MiB unless it is set.
const CHUNK: usize = 64 << 10;
/// When an end that has said nothing says that it is there: first soon, so that one that is not there
/// is noticed soon.
const FIRST_BEAT: Duration = Duration::from_millis(200);
const BEAT: Duration = Duration::from_secs(2);
/// An end that was not heard for this long is gone: at first, and later.
const FIRST_SILENCE: Duration = Duration::from_secs(2);
const SILENCE: Duration = Duration::from_secs(8);
/// How often a socket that has ended one side is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Why a stream has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// This end has closed it.
    Closed,
    /// The other end has.
    Left,
    /// The broker knows nobody who listens at the other end.
    Nobody,
    /// The other end said nothing for too long.
    Silent,
    /// A message was lost.
    Lost,
    /// The other end sends more than it may.
    Flooded,
}

/// How a stream ends, once it has.
pub(crate) type Ended = watch::Receiver<Option<Why>>;

/// What the receiver of messages and the task of the stream share.
#[derive(Debug)]
pub(super) struct Shared {
    /// When something was last heard from the other end; `None` until then.
    heard: Mutex<Option<Instant>>,
    /// How far the other end has read.
    acked: watch::Sender<u64>,
    /// How far this end has read, and how far it has received.
    read: AtomicU64,
    received: AtomicU64,
    /// The other end has said that no more bytes come, and that it reads none.
    ended: AtomicBool,
    closed: AtomicBool,
    /// What a message has shown to be wrong.
    broken: OnceLock<Why>,
}

/// The messages of one stream, as they come.
#[derive(Debug, Clone)]
pub(super) struct Inlet {
    pub(super) shared: Arc<Shared>,
    queue: mpsc::UnboundedSender<Frame>,
}

impl Inlet {
    pub(super) fn new() -> (Self, Outbox) {
        // It never has more than two windows of bytes, each once: more ends the stream.
        let (queue, frames) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            heard: Mutex::default(),
            acked: watch::Sender::new(0),
            read: AtomicU64::new(0),
            received: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            broken: OnceLock::new(),
        });
        (Self { shared: Arc::clone(&shared), queue }, Outbox { shared, frames })
    }

    /// A message has come. Says what is wrong if the stream must end, as it does when this is dropped.
    pub(super) fn take(&self, frame: Frame) -> Result<(), Why> {
        let taken = self.check_and_queue(frame);
        taken.inspect_err(|why| _ = self.shared.broken.set(*why))
    }

    fn check_and_queue(&self, frame: Frame) -> Result<(), Why> {
        *self.shared.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        match &frame {
            Frame::Ack { read, sent } => {
                self.shared.acked.send_if_modified(|acked| {
                    let is_news = *read > *acked;
                    *acked = (*acked).max(*read);
                    is_news
                });
                // The broker keeps the order: what was sent before this is here, or lost.
                let is_missing = *sent > self.shared.received.load(Relaxed);
                return if is_missing { Err(Why::Lost) } else { Ok(()) };
            }
            Frame::Open(bytes) if !self.shared.is_news(0, bytes)? => return Ok(()),
            Frame::Data(offset, bytes) if !self.shared.is_news(*offset, bytes)? => return Ok(()),
            Frame::End(_) if self.shared.ended.swap(true, Relaxed) => return Ok(()),
            Frame::Close(_) if self.shared.closed.swap(true, Relaxed) => return Ok(()),
            Frame::Open(_) | Frame::Data(..) | Frame::End(_) | Frame::Close(_) => {}
        }
        // A stream that has ended needs no more.
        _ = self.queue.send(frame);
        Ok(())
    }

    /// Nobody listens at the other end.
    pub(super) fn nobody(&self) {
        _ = self.queue.send(Frame::Ack { read: NOBODY, sent: 0 });
    }
}

/// Stands in the queue for the word of the broker.
const NOBODY: u64 = u64::MAX;

impl Shared {
    /// Whether these are the bytes after all that was received, and not those of a doubled message. So
    /// nothing is queued twice, however often the other end says it. Called by one task.
    fn is_news(&self, offset: u64, bytes: &Bytes) -> Result<bool, Why> {
        let received = self.received.load(Relaxed);
        let end = offset.checked_add(bytes.len() as u64).ok_or(Why::Flooded)?;
        if end <= received {
            return Ok(false);
        }
        if offset != received {
            return Err(Why::Lost);
        }
        self.received.store(end, Relaxed);
        let waiting = end.saturating_sub(self.read.load(Relaxed));
        if waiting > 2 * WINDOW { Err(Why::Flooded) } else { Ok(true) }
    }

    /// For how long nothing was heard since this moment.
    fn silence(&self, since: Instant) -> (Duration, bool) {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        (heard.unwrap_or(since).elapsed(), heard.is_some())
    }
}

/// What the task of a stream has to read.
#[derive(Debug)]
pub(super) struct Outbox {
    pub(super) shared: Arc<Shared>,
    frames: mpsc::UnboundedReceiver<Frame>,
}

/// Where the messages of this end go.
#[derive(Debug, Clone)]
pub(super) struct Outlet {
    pub(super) client: Client,
    pub(super) to: Subject,
    /// Where the other end answers, if it does not know yet.
    pub(super) reply: Option<Subject>,
}

impl Outlet {
    /// A client without a connection keeps messages, and at some time takes no more: the other end is
    /// as far away as if it were silent.
    async fn send(&self, message: Bytes) -> Result<(), Why> {
        let to = self.to.clone();
        let sent = async {
            // A client that is closed sends nothing, and the stream ends by its silence.
            _ = match &self.reply {
                Some(reply) => self.client.publish_with_reply(to, reply.clone(), message).await,
                None => self.client.publish(to, message).await,
            };
        };
        timeout(SILENCE, sent).await.map_err(|_| Why::Silent)
    }

    pub(super) async fn say(&self, frame: &Frame) -> Result<(), Why> {
        self.send(frame.to_message()).await
    }
}

/// Carries until one end has closed the stream, or it breaks.
pub(super) async fn carry(socket: UnixStream, inbox: Outbox, outlet: Outlet, open: Open) -> Why {
    let shared = Arc::clone(&inbox.shared);
    let mut own = Carrier {
        shared,
        outlet,
        begun: Instant::now(),
        last_said: None,
        sent: 0,
        acked: 0,
        is_open: open == Open::Done,
        read_ended: false,
        write: Write::Open,
        waiting: Bytes::new(),
    };
    let why = own.run(socket, inbox).await;
    if matches!(why, Why::Closed | Why::Lost | Why::Flooded) {
        // Otherwise the other end learns of it by silence.
        _ = own.outlet.say(&Frame::Close(own.sent)).await;
    }
    why
}

/// Whether the other end has opened the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Open {
    Needed,
    Done,
}

/// What becomes of bytes for the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Write {
    Open,
    /// No more come.
    Ended,
    /// Nobody reads them.
    Dead,
}

#[derive(Debug)]
struct Carrier {
    shared: Arc<Shared>,
    outlet: Outlet,
    begun: Instant,
    last_said: Option<Instant>,
    /// The bytes of the socket that were sent.
    sent: u64,
    /// How far the other end was told that this end has read.
    acked: u64,
    is_open: bool,
    /// No more bytes come from the socket.
    read_ended: bool,
    write: Write,
    /// Bytes for the socket.
    waiting: Bytes,
}

impl Carrier {
    /// Every step is cancel-safe, so nothing is lost between them.
    async fn run(&mut self, mut socket: UnixStream, mut inbox: Outbox) -> Why {
        let mut acks = self.shared.acked.subscribe();
        let mut looks = interval_at(self.begun + FIRST_BEAT, LOOK);
        let mut buffer = BytesMut::new();
        loop {
            let room = (*acks.borrow_and_update() + WINDOW).saturating_sub(self.sent);
            let may_read = !self.read_ended && room > 0;
            self.prepare(&mut buffer);
            let (mut reader, mut writer) = socket.split();
            let mut into = (&mut buffer).limit(room.min(CHUNK as u64) as usize);
            let step = tokio::select! {
                read = reader.read_buf(&mut into), if may_read => Step::Read(read.unwrap_or(0)),
                _ = acks.changed(), if !self.read_ended && room == 0 => Step::Nothing,
                written = writer.write_buf(&mut self.waiting), if !self.waiting.is_empty() => {
                    Step::Written(written)
                }
                frame = inbox.frames.recv(), if self.waiting.is_empty() => Step::Frame(frame),
                _ = looks.tick() => Step::Look,
            };
            let done = match step {
                Step::Nothing => None,
                Step::Read(0) => self.socket_ended(&socket).await,
                Step::Read(_) => self.send(&mut buffer).await,
                Step::Written(written) => self.written(written).await,
                Step::Frame(frame) => self.obey(&mut socket, frame).await,
                Step::Look => self.look(&socket).await,
            };
            if let Some(why) = done {
                return why;
            }
        }
    }

    /// Room for a header and what is read behind it.
    fn prepare(&self, buffer: &mut BytesMut) {
        if buffer.is_empty() {
            // A message that waits to be sent has a part of the memory before.
            if buffer.capacity() < LEAST_ROOM {
                buffer.reserve(HEADER + CHUNK);
            }
            let none = Bytes::new();
            let frame = if self.is_open { Frame::Data(self.sent, none) } else { Frame::Open(none) };
            frame.put_header(buffer);
        }
    }

    async fn send(&mut self, buffer: &mut BytesMut) -> Option<Why> {
        let message = buffer.split().freeze();
        self.sent += (message.len() - HEADER) as u64;
        self.is_open = true;
        self.say(message).await.err()
    }

    async fn say(&mut self, message: Bytes) -> Result<(), Why> {
        self.last_said = Some(Instant::now());
        self.outlet.send(message).await
    }

    async fn socket_ended(&mut self, socket: &UnixStream) -> Option<Why> {
        self.read_ended = true;
        if is_hung_up(socket) || self.write == Write::Dead {
            return Some(Why::Closed);
        }
        let said = self.say(Frame::End(self.sent).to_message()).await;
        said.err().or_else(|| (self.write == Write::Ended).then_some(Why::Closed))
    }

    async fn written(&mut self, written: io::Result<usize>) -> Option<Why> {
        match written {
            Ok(count) => {
                let read = self.shared.read.fetch_add(count as u64, Relaxed) + count as u64;
                if read - self.acked >= WINDOW / 4
                    && let Err(why) = self.ack().await
                {
                    return Some(why);
                }
            }
            // What it has written before it left is sent.
            Err(_) => {
                self.write = Write::Dead;
                self.waiting = Bytes::new();
            }
        }
        (self.write == Write::Dead && self.read_ended).then_some(Why::Closed)
    }

    async fn ack(&mut self) -> Result<(), Why> {
        self.acked = self.shared.read.load(Relaxed);
        let ack = Frame::Ack { read: self.acked, sent: self.sent };
        self.say(ack.to_message()).await
    }

    /// A message of the other end, all of the one before being written.
    async fn obey(&mut self, socket: &mut UnixStream, frame: Option<Frame>) -> Option<Why> {
        let read = self.shared.read.load(Relaxed);
        let Some(frame) = frame else {
            return Some(self.shared.broken.get().copied().unwrap_or(Why::Flooded));
        };
        match frame {
            Frame::Ack { .. } => Some(Why::Nobody),
            Frame::Open(bytes) | Frame::Data(_, bytes) => {
                if self.write == Write::Open {
                    self.waiting = bytes;
                }
                None
            }
            Frame::End(at) | Frame::Close(at) if at > read && self.write == Write::Open => {
                Some(Why::Lost)
            }
            Frame::Close(_) => Some(Why::Left),
            Frame::End(_) => {
                self.write = Write::Ended;
                // A socket that is closed is noticed when it is read.
                _ = socket.shutdown().await;
                self.read_ended.then_some(Why::Closed)
            }
        }
    }

    /// Now and then: whether both ends are there.
    async fn look(&mut self, socket: &UnixStream) -> Option<Why> {
        if self.read_ended && is_hung_up(socket) {
            return Some(Why::Closed);
        }
        let (silent, was_heard) = self.shared.silence(self.begun);
        if silent > if was_heard { SILENCE } else { FIRST_SILENCE } {
            return Some(Why::Silent);
        }
        if !self.is_open || self.last_said.is_some_and(|said| said.elapsed() < BEAT) {
            return None;
        }
        let end = Frame::End(self.sent).to_message();
        // Again: the first one may have been lost.
        if self.read_ended
            && let Err(why) = self.say(end).await
        {
            return Some(why);
        }
        self.ack().await.err()
    }
}

/// A message with less room is sent in more pieces than it needs.
const LEAST_ROOM: usize = HEADER + (4 << 10);

enum Step {
    Nothing,
    Read(usize),
    Written(io::Result<usize>),
    Frame(Option<Frame>),
    Look,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(sent: u64) -> Frame {
        Frame::Ack { read: 0, sent }
    }

    #[test]
    fn what_comes_twice_is_queued_once() {
        let (inlet, mut inbox) = Inlet::new();
        let data = |offset| Frame::Data(offset, Bytes::from_static(b"12345"));
        for _ in 0..3 {
            for frame in [data(0), Frame::Data(5, Bytes::new()), Frame::End(5), Frame::Close(5)] {
                inlet.take(frame).unwrap();
            }
        }
        let queued: Vec<Frame> = std::iter::from_fn(|| inbox.frames.try_recv().ok()).collect();
        assert_eq!(queued, [data(0), Frame::End(5), Frame::Close(5)]);
        assert_eq!(inlet.take(data(6)), Err(Why::Lost));
        assert_eq!(inlet.take(data(u64::MAX)), Err(Why::Flooded));
    }

    #[test]
    fn a_beat_shows_that_the_last_message_was_lost() {
        let (inlet, _inbox) = Inlet::new();
        inlet.take(Frame::Data(0, Bytes::from_static(b"12345"))).unwrap();
        inlet.take(ack(5)).unwrap();
        // A doubled beat of before.
        inlet.take(ack(3)).unwrap();
        assert_eq!(inlet.take(ack(6)), Err(Why::Lost));
        assert_eq!(inlet.shared.broken.get(), Some(&Why::Lost));
    }
}
