//! Writing to a command: a bounded queue that never blocks.
//!
//! Permits count the bytes in the queue; a write beyond the limit is refused at once. Bytes that
//! were accepted before take no space. Repeating them gets the same answer, whatever happened to
//! the command since. The owner writes one piece at a time between its other work, so a command
//! that reads nothing delays no timeout, signal or reader.

use std::collections::VecDeque;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use lastbyte_sys::readiness::{self, Interest};
use lastbyte_sys::{Errno, pipe};
use tokio::io::unix::AsyncFd;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot, watch};

/// Up to 16 MiB may wait for a command that does not read.
pub(crate) const QUEUE_BYTES: usize = 16 << 20;

/// The progress of standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StdinState {
    /// How many bytes were accepted, and whether they are the last.
    accepted: u64,
    then: Then,
    /// How many bytes the command's pipe has taken.
    pub written: u64,
    pub open: StdinOpen,
}

/// Whether more can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StdinOpen {
    Open,
    /// Closed by us, or by the leader's exit: the command reads end of file.
    Closed,
    /// The command closed its end; the queued bytes are lost.
    Broken,
}

/// A write was queued. `accepted` is the offset at which the next one begins.
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
    #[error("the process has ended")]
    Exited,
    #[error("{bytes} bytes do not fit into the input queue, which has room for {room}")]
    QueueFull { bytes: usize, room: usize },
    #[error("a write at offset {given} leaves a gap: {expected} bytes were accepted so far")]
    Gap { given: u64, expected: u64 },
}

/// What to do with standard input after the bytes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    KeepOpen,
    Close,
}

/// A write sent to the owner.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) bytes: Vec<u8>,
    /// Where in the input these bytes belong; `None` appends them.
    pub(crate) offset: Option<u64>,
    pub(crate) then: Then,
    pub(crate) reply: oneshot::Sender<Result<Written, WriteError>>,
}

/// The caller's side: watches progress, and knows what was accepted after the owner's side is gone.
#[derive(Debug, Clone)]
pub(crate) struct StdinGate {
    pub(crate) state: watch::Receiver<StdinState>,
}

/// The owner's side.
#[derive(Debug)]
pub(crate) struct StdinQueue {
    /// `None` once it is closed or broken.
    pipe: Option<AsyncFd<OwnedFd>>,
    queue: VecDeque<QueuedBytes>,
    permits: Arc<Semaphore>,
    /// Whether the last accepted byte was in the middle of a line.
    mid_line: bool,
    end_of_file: EndOfFile,
    state: watch::Sender<StdinState>,
}

#[derive(Debug)]
struct QueuedBytes {
    bytes: Vec<u8>,
    done: usize,
    /// Released with the piece; `None` for the end of file on a terminal, which is not input.
    permit: Option<OwnedSemaphorePermit>,
}

/// How the command learns that no more input comes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum EndOfFile {
    /// Close the pipe.
    Close,
    /// Type this byte: a terminal has no other way.
    Type(u8),
}

impl StdinGate {
    /// The answer to a write after the exit: only a repetition of accepted bytes succeeds.
    pub(crate) fn answer_late(
        &self,
        offset: Option<u64>,
        len: usize,
        then: Then,
    ) -> Result<Written, WriteError> {
        let state = *self.state.borrow();
        match state.known(offset, len) {
            Ok(known) if state.is_repeated(known, len, then) => Ok(state.answer()),
            Ok(_) | Err(_) => Err(WriteError::Exited),
        }
    }
}

impl StdinState {
    /// How many of the bytes at this offset were accepted before.
    fn known(self, offset: Option<u64>, len: usize) -> Result<usize, WriteError> {
        let expected = self.accepted;
        let given = offset.unwrap_or(expected);
        let known = expected.checked_sub(given).ok_or(WriteError::Gap { given, expected })?;
        Ok(usize::try_from(known).unwrap_or(usize::MAX).min(len))
    }

    /// Whether a write adds nothing to what was accepted, neither bytes nor a close.
    fn is_repeated(self, known: usize, len: usize, then: Then) -> bool {
        known == len
            && match then {
                Then::KeepOpen => len > 0,
                Then::Close => self.then == Then::Close,
            }
    }

    fn answer(self) -> Written {
        Written { accepted: self.accepted }
    }
}

impl StdinQueue {
    pub(crate) fn new(end: OwnedFd, end_of_file: EndOfFile) -> io::Result<(Self, StdinGate)> {
        let (then, open) = (Then::KeepOpen, StdinOpen::Open);
        let (state, watched) = watch::channel(StdinState { accepted: 0, then, written: 0, open });
        let queue = Self {
            pipe: Some(readiness::watch(end, Interest::WRITABLE)?),
            queue: VecDeque::new(),
            permits: Arc::new(Semaphore::new(QUEUE_BYTES)),
            mid_line: false,
            end_of_file,
            state,
        };
        Ok((queue, StdinGate { state: watched }))
    }

    pub(crate) fn taken_over(
        ends: &mut crate::owner::ends::Ends,
        _: u64,
    ) -> io::Result<Option<(Self, StdinGate)>> {
        _ = (ends.input.take(), ends.accepted.take());
        Ok(None)
    }

    /// Queues the whole input of the command.
    pub(crate) fn give(&mut self, input: Vec<u8>) -> Result<Written, WriteError> {
        self.accept(input, Some(0), Then::Close)
    }

    /// Queues a write and answers it.
    pub(crate) fn take(&mut self, write: Write) {
        let Write { bytes, offset, then, reply } = write;
        // The caller may have gone away.
        _ = reply.send(self.accept(bytes, offset, then));
    }

    /// Bytes of an earlier write are not queued again and need no space.
    fn accept(
        &mut self,
        mut bytes: Vec<u8>,
        offset: Option<u64>,
        then: Then,
    ) -> Result<Written, WriteError> {
        let known = self.check(offset, bytes.len(), then)?;
        let fresh = bytes.split_off(known);
        if !fresh.is_empty() {
            let permit = Some(self.reserve(fresh.len())?);
            self.state.send_modify(|state| state.accepted += fresh.len() as u64);
            self.mid_line = fresh.last() != Some(&b'\n');
            self.queue.push_back(QueuedBytes { bytes: fresh, done: 0, permit });
        }
        if then == Then::Close && self.then() == Then::KeepOpen {
            self.close_behind();
        }
        Ok(self.state.borrow().answer())
    }

    /// How many of the bytes are already accepted, or why the write is refused.
    fn check(&self, offset: Option<u64>, len: usize, then: Then) -> Result<usize, WriteError> {
        let state = *self.state.borrow();
        let known = state.known(offset, len)?;
        // A repetition of accepted bytes, or of the close, always succeeds.
        if state.is_repeated(known, len, then) {
            return Ok(known);
        }
        match state.open {
            StdinOpen::Broken => Err(WriteError::Broken),
            StdinOpen::Open if state.then == Then::KeepOpen => Ok(known),
            StdinOpen::Open | StdinOpen::Closed => Err(WriteError::Closed),
        }
    }

    /// Reserves space for these bytes, or reports how much there is.
    fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, WriteError> {
        let full = || WriteError::QueueFull { bytes, room: self.permits.available_permits() };
        let count = u32::try_from(bytes).map_err(|_| full())?;
        Arc::clone(&self.permits).try_acquire_many_owned(count).map_err(|_| full())
    }

    fn then(&self) -> Then {
        self.state.borrow().then
    }

    /// Closes the input after what is queued.
    fn close_behind(&mut self) {
        self.state.send_modify(|state| state.then = Then::Close);
        if let EndOfFile::Type(byte) = self.end_of_file {
            // In the middle of a line, the first one only submits the line.
            let bytes = vec![byte; if self.mid_line { 2 } else { 1 }];
            self.queue.push_back(QueuedBytes { bytes, done: 0, permit: None });
        }
        self.close_if_done();
    }

    /// Writes a piece when the command's pipe has space. Waits forever if there is nothing to
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
    /// The leader has exited, so no more is written.
    fn drop(&mut self) {
        if self.pipe.is_some() {
            self.close(StdinOpen::Closed);
        }
    }
}
