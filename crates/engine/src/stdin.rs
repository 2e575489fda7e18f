//! Writing to a command: a bounded queue that can stand in nobody's way.
//!
//! The bytes in the queue are counted by permits; past the bound a write is refused at once. Bytes
//! that were accepted before take no room, and their repetition is answered alike whatever became
//! of the command since. The owner writes one piece at a time between its other
//! duties, so a command that reads nothing delays neither a timeout nor a signal nor a reader.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use lastbyte_sys::readiness::{self, Interest};
use lastbyte_sys::{Errno, pipe};
use tokio::io::unix::AsyncFd;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

/// 16 MiB may wait for a command that does not read.
pub(crate) const QUEUE_BYTES: usize = 16 << 20;

/// How far standard input has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StdinState {
    /// Bytes the command's pipe has taken.
    pub written: u64,
    pub open: StdinOpen,
}

/// Whether more can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdinOpen {
    Open,
    /// Closed by us, or by the leader's exit: the command has its end of file.
    Closed,
    /// The command closed its end; the bytes that were queued are gone.
    Broken,
}

/// A write was queued; `accepted` is the offset the next one begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub accepted: u64,
}

/// Why a write was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    #[error("the command was started without standard input")]
    NotOpen,
    #[error("standard input is already closed")]
    Closed,
    #[error("the command has closed its standard input")]
    Broken,
    #[error("the process has exited")]
    Exited,
    #[error("{bytes} bytes do not fit into the input queue, which has room for {room}")]
    QueueFull { bytes: usize, room: usize },
    #[error("a write at offset {given} leaves a gap: {expected} bytes were accepted so far")]
    Gap { given: u64, expected: u64 },
}

/// What happens to standard input after the bytes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    KeepOpen,
    Close,
}

/// A write on its way to the owner.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) bytes: Vec<u8>,
    /// Where in the input these bytes belong; `None` for right behind what is there.
    pub(crate) offset: Option<u64>,
    pub(crate) then: Then,
    pub(crate) reply: oneshot::Sender<Result<Written, WriteError>>,
}

/// The caller's side: watches progress, and knows what was accepted when the owner's side is gone.
#[derive(Debug, Clone)]
pub(crate) struct StdinGate {
    taken: watch::Receiver<Taken>,
    pub(crate) state: watch::Receiver<StdinState>,
}

/// What was accepted so far.
#[derive(Debug, Clone, Copy)]
struct Taken {
    accepted: u64,
    then: Then,
}

/// The owner's side.
#[derive(Debug)]
pub(crate) struct StdinQueue {
    /// `None` once it is closed or broken.
    pipe: Option<AsyncFd<OwnedFd>>,
    queue: VecDeque<Piece>,
    room: Arc<Semaphore>,
    taken: watch::Sender<Taken>,
    /// Whether the last byte accepted was in the middle of a line.
    mid_line: bool,
    end_of_file: EndOfFile,
    state: watch::Sender<StdinState>,
}

#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    done: usize,
    /// Given back with the piece; `None` for the end of file on a terminal, which is no input.
    permit: Option<OwnedSemaphorePermit>,
}

/// How the command learns that no more comes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EndOfFile {
    /// The pipe is closed.
    Close,
    /// This byte is typed: a terminal has no other way.
    Type(u8),
}

impl StdinGate {
    /// The answer to a write that comes after the exit: only what was accepted before is.
    pub(crate) fn answer_late(
        &self,
        offset: Option<u64>,
        len: usize,
        then: Then,
    ) -> Result<Written, WriteError> {
        let taken = *self.taken.borrow();
        match taken.known(offset, len) {
            Ok(known) if taken.is_repeated(known, len, then) => Ok(taken.written()),
            Ok(_) | Err(_) => Err(WriteError::Exited),
        }
    }
}

impl Taken {
    /// How many of the bytes at this offset were accepted before.
    fn known(self, offset: Option<u64>, len: usize) -> Result<usize, WriteError> {
        let expected = self.accepted;
        let given = offset.unwrap_or(expected);
        let known = expected.checked_sub(given).ok_or(WriteError::Gap { given, expected })?;
        Ok(usize::try_from(known).unwrap_or(usize::MAX).min(len))
    }

    /// Whether a write brings nothing that was not accepted before, neither bytes nor a close.
    fn is_repeated(self, known: usize, len: usize, then: Then) -> bool {
        known == len
            && match then {
                Then::KeepOpen => len > 0,
                Then::Close => self.then == Then::Close,
            }
    }

    fn written(self) -> Written {
        Written { accepted: self.accepted }
    }
}

impl StdinQueue {
    pub(crate) fn new(end: OwnedFd, end_of_file: EndOfFile) -> io::Result<(Self, StdinGate)> {
        let first = StdinState { written: 0, open: StdinOpen::Open };
        let (state, watched) = watch::channel(first);
        let (taken, known) = watch::channel(Taken { accepted: 0, then: Then::KeepOpen });
        let pipe = readiness::watch(end, Interest::WRITABLE)?;
        let queue = Self {
            pipe: Some(pipe),
            queue: VecDeque::new(),
            room: Arc::new(Semaphore::new(QUEUE_BYTES)),
            taken,
            mid_line: false,
            end_of_file,
            state,
        };
        Ok((queue, StdinGate { taken: known, state: watched }))
    }

    /// Queues all that the command will ever read.
    pub(crate) fn give(&mut self, input: Vec<u8>) -> Result<Written, WriteError> {
        self.accept(input, Some(0), Then::Close)
    }

    /// Queues a write and answers it.
    pub(crate) fn take(&mut self, write: Write) {
        let Write { bytes, offset, then, reply } = write;
        // A caller that went away does not need to know.
        _ = reply.send(self.accept(bytes, offset, then));
    }

    /// Bytes that an earlier write has brought are not queued again, and need no room.
    fn accept(
        &mut self,
        mut bytes: Vec<u8>,
        offset: Option<u64>,
        then: Then,
    ) -> Result<Written, WriteError> {
        let known = self.judge(offset, bytes.len(), then)?;
        let fresh = bytes.split_off(known);
        if !fresh.is_empty() {
            let permit = Some(self.reserve(fresh.len())?);
            self.taken.send_modify(|taken| taken.accepted += fresh.len() as u64);
            self.mid_line = fresh.last() != Some(&b'\n');
            self.queue.push_back(Piece { bytes: fresh, done: 0, permit });
        }
        if then == Then::Close && self.then() == Then::KeepOpen {
            self.close_behind();
        }
        Ok(self.taken.borrow().written())
    }

    /// How many of the bytes are known already, or why the write is refused.
    fn judge(&self, offset: Option<u64>, len: usize, then: Then) -> Result<usize, WriteError> {
        let taken = *self.taken.borrow();
        let known = taken.known(offset, len)?;
        // A repetition of what was accepted, or of the close, is no news.
        if taken.is_repeated(known, len, then) {
            return Ok(known);
        }
        match self.state.borrow().open {
            StdinOpen::Broken => Err(WriteError::Broken),
            StdinOpen::Open if taken.then == Then::KeepOpen => Ok(known),
            StdinOpen::Open | StdinOpen::Closed => Err(WriteError::Closed),
        }
    }

    /// Takes room for these bytes, or says how much there is.
    fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, WriteError> {
        let full = || WriteError::QueueFull { bytes, room: self.room.available_permits() };
        let count = u32::try_from(bytes).map_err(|_| full())?;
        Arc::clone(&self.room).try_acquire_many_owned(count).map_err(|_| full())
    }

    fn then(&self) -> Then {
        self.taken.borrow().then
    }

    /// Nothing can follow what is queued.
    fn close_behind(&mut self) {
        self.taken.send_modify(|taken| taken.then = Then::Close);
        if let EndOfFile::Type(byte) = self.end_of_file {
            // In the middle of a line the first one only hands the line over.
            let bytes = vec![byte; if self.mid_line { 2 } else { 1 }];
            self.queue.push_back(Piece { bytes, done: 0, permit: None });
        }
        self.close_if_done();
    }

    /// Writes a piece when the command's pipe has room; waits for ever when there is nothing to
    /// write. Cancel-safe: progress is kept in the queue.
    pub(crate) async fn step(&mut self) {
        let (Some(pipe), Some(piece)) = (&self.pipe, self.queue.front_mut()) else {
            return pending().await;
        };
        let Ok(mut ready) = pipe.writable().await else { return pending().await };
        match pipe::write(pipe.get_ref(), &piece.bytes[piece.done..]) {
            Ok(count) => self.wrote(count),
            Err(Errno::AGAIN) => ready.clear_ready(),
            Err(_) => self.close(StdinOpen::Broken),
        }
    }

    fn wrote(&mut self, count: usize) {
        let Some(piece) = self.queue.front_mut() else { return };
        piece.done += count;
        let input = piece.permit.is_some();
        if piece.done == piece.bytes.len() {
            self.queue.pop_front();
        }
        if input {
            self.state.send_modify(|state| state.written += count as u64);
        }
        self.close_if_done();
    }

    fn close_if_done(&mut self) {
        if self.then() == Then::Close && self.queue.is_empty() && self.pipe.is_some() {
            self.close(StdinOpen::Closed);
        }
    }

    fn close(&mut self, how: StdinOpen) {
        self.pipe = None;
        self.queue.clear();
        self.state.send_modify(|state| state.open = how);
    }
}

impl Drop for StdinQueue {
    /// The leader has exited: nobody writes any more.
    fn drop(&mut self) {
        if self.pipe.is_some() {
            self.close(StdinOpen::Closed);
        }
    }
}
