//! The bytes of a WebSocket client, bounded by what all clients are sending at one time.
//!
//! tungstenite's own limits are per connection: it allocates a whole frame when its header arrives, so
//! thousands of clients that announce 1 MiB each would take gigabytes, and a smaller `max_frame_size`
//! would refuse messages that are allowed today. So large frames are passed on in pieces, the first of
//! them once the limit over all connections has room for the whole message.

use std::io::{self, Cursor};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use lastbyte_wire::{Error, ErrorCode};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::Limits;
use crate::listen::body::check_memory;

const KIB: u64 = 1024;
/// A message up to this size needs no room: there are not more of them than connections.
const SMALL_MESSAGE: u64 = 64 * KIB;
/// A larger frame is given to the library as several. A multiple of four, so that the mask of each
/// begins with its first byte.
const PIECE: u64 = 16 * KIB;
/// What is read at once.
const READ_BYTES: usize = 8 << 10;
/// The most that a control frame may carry (RFC 6455, 5.5).
const MOST_CONTROL_BYTES: u64 = 125;

/// Room for the messages of all clients of a door. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Messages {
    /// In KiB.
    room: Arc<Semaphore>,
    most: u64,
    time: Duration,
}

/// Reads no more of a message than there is room for.
pub(super) struct Bounded<S> {
    pub(super) stream: S,
    most_bytes: u64,
    /// What was read and is not given yet.
    unread: Bytes,
    /// The header of the piece that begins, as far as it is not given yet.
    header: Bytes,
    /// Of the piece that has begun.
    left: u64,
    /// The message ends with that piece.
    is_last: bool,
    /// What comes after that piece of the same frame, and its length.
    frame: Option<(FrameHeader, u64)>,
    message: PartialMessage,
}

/// The message that has begun, and the room it has.
struct PartialMessage {
    messages: Messages,
    /// What its frames have announced.
    len: u64,
    room: Option<OwnedSemaphorePermit>,
    acquiring: Option<Acquiring>,
    /// Until when it must be whole; only large ones have one.
    deadline: Option<Pin<Box<Sleep>>>,
    /// Of the message before it, until the next is asked for.
    taken: Option<OwnedSemaphorePermit>,
}

type Acquiring = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

impl Messages {
    pub(crate) fn new(limits: &Limits) -> Self {
        let most = limits.messages_bytes as u64;
        let room = Arc::new(Semaphore::new((most / KIB) as usize));
        Self { room, most, time: limits.body_time }
    }

    fn no_room(&self) -> Error {
        let most = self.most;
        let message = format!("message limit reached: {most} bytes are being received");
        let small = SMALL_MESSAGE / KIB;
        Error::new(ErrorCode::TooManyBodies, message)
            .hint(format!("send messages of at most {small} KiB, which are not limited"))
    }

    fn too_slow(&self) -> Error {
        let seconds = self.time.as_secs_f64();
        let message = format!("timed out after {seconds} s waiting for a large message");
        Error::new(ErrorCode::RequestTooSlow, message)
    }
}

impl PartialMessage {
    /// Waits until the message may have this many bytes.
    fn poll_room(&mut self, context: &mut Context<'_>, len: u64) -> Poll<io::Result<()>> {
        if len <= SMALL_MESSAGE {
            return Poll::Ready(Ok(()));
        }
        let Self { messages, room, acquiring, deadline, .. } = self;
        deadline.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + messages.time)));
        let acquiring = acquiring.get_or_insert_with(|| {
            let has = room.as_ref().map_or(0, |room| room.num_permits() as u64);
            let needs = len.min(messages.most).div_ceil(KIB).saturating_sub(has);
            let needs = u32::try_from(needs).unwrap_or(u32::MAX);
            Box::pin(Arc::clone(&messages.room).acquire_many_owned(needs))
        });
        let Poll::Ready(more) = acquiring.as_mut().poll(context) else {
            return self.poll_late(context).map(Err);
        };
        let more = more.map_err(io::Error::other)?;
        self.acquiring = None;
        check_memory(usize::try_from(len).unwrap_or(usize::MAX)).map_err(io::Error::other)?;
        match &mut self.room {
            Some(room) => room.merge(more),
            None => self.room = Some(more),
        }
        Poll::Ready(Ok(()))
    }

    fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let Some(deadline) = &mut self.deadline else { return Poll::Pending };
        ready!(deadline.as_mut().poll(context));
        let error = match self.acquiring {
            Some(_) => self.messages.no_room(),
            None => self.messages.too_slow(),
        };
        Poll::Ready(io::Error::other(error))
    }

    fn end(&mut self) {
        (self.len, self.deadline) = (0, None);
        if let Some(room) = self.room.take() {
            self.taken = Some(room);
        }
    }
}

impl<S> Bounded<S> {
    pub(super) fn new(stream: S, messages: Messages, most_bytes: usize) -> Self {
        let (room, acquiring, deadline, taken) = (None, None, None, None);
        Self {
            stream,
            most_bytes: most_bytes as u64,
            unread: Bytes::new(),
            header: Bytes::new(),
            left: 0,
            is_last: false,
            frame: None,
            message: PartialMessage { messages, len: 0, room, acquiring, deadline, taken },
        }
    }

    /// Its reader has done with the message that it was given last.
    pub(super) fn free_taken(&mut self) {
        self.message.taken = None;
    }

    /// Ready when a large message has taken too long.
    pub(super) fn poll_late(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        self.message.poll_late(context)
    }

    /// Gives what was read, as far as there is room for it.
    fn poll_give(
        &mut self,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while into.remaining() > 0 {
            if !self.header.is_empty() {
                let count = into.remaining().min(self.header.len());
                into.put_slice(&self.header.split_to(count));
            } else if self.left > 0 {
                if self.unread.is_empty() {
                    break;
                }
                let most = self.left.min(into.remaining() as u64) as usize;
                let payload = self.unread.split_to(most.min(self.unread.len()));
                self.left -= payload.len() as u64;
                into.put_slice(&payload);
            } else if let Some((frame, len)) = self.frame.take() {
                self.begin_piece(frame, len);
            } else {
                let mut unread = Cursor::new(&self.unread);
                let parsed = FrameHeader::parse(&mut unread).map_err(io::Error::other)?;
                let Some((frame, len)) = parsed else { break };
                let count = unread.position() as usize;
                // It stays where it is until there is room for its frame.
                ready!(self.poll_admit(context, &frame, len))?;
                self.unread.advance(count);
                self.frame = Some((frame, len));
            }
            if self.left == 0 && std::mem::take(&mut self.is_last) {
                self.message.end();
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_admit(
        &mut self,
        context: &mut Context<'_>,
        frame: &FrameHeader,
        len: u64,
    ) -> Poll<io::Result<()>> {
        if matches!(frame.opcode, OpCode::Control(_)) {
            let fits = len <= MOST_CONTROL_BYTES;
            let too_long = || io::Error::new(io::ErrorKind::InvalidData, "control frame too long");
            return Poll::Ready(fits.then_some(()).ok_or_else(too_long));
        }
        let len = self.message.len.saturating_add(len);
        if len > self.most_bytes {
            return Poll::Ready(Err(io::Error::other(self.too_long())));
        }
        ready!(self.message.poll_room(context, len))?;
        self.message.len = len;
        Poll::Ready(Ok(()))
    }

    fn too_long(&self) -> Error {
        let most = self.most_bytes >> 20;
        let text = format!("the message is longer than {most} MiB; none of it was written");
        Error::new(ErrorCode::BodyTooLarge, text)
            .hint("attach again and send it as several messages")
    }

    fn begin_piece(&mut self, mut frame: FrameHeader, len: u64) {
        if len > PIECE {
            let rest = FrameHeader { opcode: OpCode::Data(Data::Continue), ..frame.clone() };
            self.frame = Some((rest, len - PIECE));
            frame.is_final = false;
        }
        self.left = len.min(PIECE);
        self.is_last = frame.is_final && matches!(frame.opcode, OpCode::Data(_));
        let mut header = Vec::with_capacity(frame.len(self.left));
        frame.format(self.left, &mut header).expect("a vector takes all");
        self.header = header.into();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(error) = self.poll_late(context) {
            return Poll::Ready(Err(error));
        }
        let before = into.filled().len();
        loop {
            let given = self.poll_give(context, into);
            if into.filled().len() > before {
                // What is wrong behind it is found again at the next read.
                return Poll::Ready(Ok(()));
            }
            ready!(given)?;
            let mut bytes = [0; READ_BYTES];
            let mut read = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut read))?;
            if read.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            // The beginning of a header may be left.
            self.unread = [&self.unread, read.filled()].concat().into();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    const MASK: Option<[u8; 4]> = Some([1, 2, 3, 4]);

    fn messages(time: Duration) -> Messages {
        Messages::new(&Limits { messages_bytes: 128 << 10, body_time: time, ..Limits::default() })
    }

    fn pair(messages: &Messages) -> (DuplexStream, Bounded<DuplexStream>) {
        let (client, server) = duplex(1 << 20);
        (client, Bounded::new(server, messages.clone(), 256 << 10))
    }

    /// A frame of this many bytes.
    fn frame(first: u8, len: usize) -> Vec<u8> {
        let opcode = OpCode::from(first & 0x0f);
        let (is_final, mask) = (first & 0x80 != 0, MASK);
        let header = FrameHeader { is_final, opcode, mask, ..FrameHeader::default() };
        let mut bytes = Vec::new();
        header.format(len as u64, &mut bytes).unwrap();
        bytes.extend((0..len).map(|at| at as u8));
        bytes
    }

    async fn is_ready<T>(mut future: Pin<&mut impl Future<Output = T>>) -> bool {
        poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await
    }

    /// The frames in these bytes, as the library takes them apart.
    fn frames(mut bytes: &[u8]) -> Vec<(FrameHeader, &[u8])> {
        let mut frames = Vec::new();
        while !bytes.is_empty() {
            let mut cursor = Cursor::new(bytes);
            let (header, len) = FrameHeader::parse(&mut cursor).unwrap().unwrap();
            let (payload, rest) = bytes[cursor.position() as usize..].split_at(len as usize);
            frames.push((header, payload));
            bytes = rest;
        }
        frames
    }

    /// The first byte of a frame without reserved bits.
    fn first(header: &FrameHeader) -> u8 {
        u8::from(header.opcode) | if header.is_final { 0x80 } else { 0 }
    }

    #[tokio::test]
    async fn a_large_frame_is_given_in_pieces_and_nothing_of_it_is_lost() {
        let (mut client, mut server) = pair(&messages(Duration::from_secs(60)));
        let sent = [frame(0x89, 5), frame(0x82, 100_000), frame(0x81, 0), frame(0x81, 7)];
        client.write_all(&sent.concat()).await.unwrap();
        drop(client);
        let mut given = Vec::new();
        server.read_to_end(&mut given).await.unwrap();
        let frames = frames(&given);
        let firsts: Vec<_> = frames.iter().map(|(header, _)| first(header)).collect();
        assert_eq!(firsts, [0x89, 0x02, 0, 0, 0, 0, 0, 0x80, 0x81, 0x81]);
        let small = |payload: &[u8]| payload.len() as u64 <= PIECE;
        assert!(frames.iter().all(|(header, payload)| small(payload) && header.mask == MASK));
        let payload: Vec<u8> =
            frames[1..8].iter().flat_map(|(_, payload)| *payload).copied().collect();
        assert!(sent[1].ends_with(&payload) && payload.len() == 100_000);
    }

    #[tokio::test]
    async fn a_message_waits_until_there_is_room_beside_the_others() {
        let messages = messages(Duration::from_secs(3600));
        let (mut first_client, mut first) = pair(&messages);
        let (mut second_client, mut second) = pair(&messages);
        first_client.write_all(&frame(0x02, 80_000)).await.unwrap();
        let mut given = vec![0; 80_000];
        first.read_exact(&mut given).await.unwrap();
        second_client.write_all(&frame(0x82, 90_000)).await.unwrap();
        let mut byte = [0];
        let mut reading = Box::pin(second.read_exact(&mut byte));
        assert!(!is_ready(reading.as_mut()).await, "there is no room for both");
        // A message that is whole has its room until the next is asked for.
        first_client.write_all(&frame(0x80, 10)).await.unwrap();
        let mut rest = vec![0; 5 * 8 + 6 + 10];
        first.read_exact(&mut rest).await.unwrap();
        assert!(!is_ready(reading.as_mut()).await, "its reader has it");
        first.free_taken();
        reading.await.unwrap();
        // What is small needs none.
        first_client.write_all(&frame(0x82, 60_000)).await.unwrap();
        first.read_exact(&mut vec![0; 60_000]).await.unwrap();
    }

    #[tokio::test]
    async fn a_large_message_that_does_not_come_to_its_end_is_refused() {
        let messages = messages(Duration::from_millis(20));
        let (mut client, mut server) = pair(&messages);
        let frame = frame(0x82, 100_000);
        client.write_all(&frame[..frame.len() - 1]).await.unwrap();
        let error = server.read_to_end(&mut Vec::new()).await.unwrap_err();
        let told = error.get_ref().and_then(|error| error.downcast_ref::<Error>()).unwrap();
        assert_eq!(told.code, ErrorCode::RequestTooSlow);
        let (mut client, mut other) = pair(&messages);
        client.write_all(&frame).await.unwrap();
        let error = other.read_to_end(&mut Vec::new()).await.unwrap_err();
        let told = error.get_ref().and_then(|error| error.downcast_ref::<Error>()).unwrap();
        assert_eq!(told.code, ErrorCode::TooManyBodies, "the first has the room while it lives");
    }

    #[tokio::test]
    async fn what_is_too_long_is_refused_before_it_comes() {
        for parts in [vec![frame(0x82, 300_000)], vec![frame(0x02, 60_000), frame(0x00, 250_000)]] {
            let (mut client, mut server) = pair(&messages(Duration::from_secs(60)));
            client.write_all(&parts.concat()).await.unwrap();
            let error = server.read_to_end(&mut Vec::new()).await.unwrap_err();
            let told = error.get_ref().and_then(|error| error.downcast_ref::<Error>()).unwrap();
            assert_eq!(told.code, ErrorCode::BodyTooLarge);
        }
        let (mut client, mut server) = pair(&messages(Duration::from_secs(60)));
        client.write_all(&frame(0x89, 126)).await.unwrap();
        server.read_to_end(&mut Vec::new()).await.unwrap_err();
    }
}
