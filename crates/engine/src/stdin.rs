//! Writing to a command: a bounded queue that can stand in nobody's way.
//!
//! The bytes in the queue are counted by permits that the caller takes before it sends them; past
//! the bound a write is refused at once. The owner writes one piece at a time between its other
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
    pub(crate) permit: OwnedSemaphorePermit,
    pub(crate) reply: oneshot::Sender<Result<Written, WriteError>>,
}

/// The caller's side: takes permits and watches progress.
#[derive(Debug, Clone)]
pub(crate) struct StdinGate {
    room: Arc<Semaphore>,
    pub(crate) state: watch::Receiver<StdinState>,
}

/// The owner's side.
#[derive(Debug)]
pub(crate) struct StdinQueue {
    /// `None` once it is closed or broken.
    pipe: Option<AsyncFd<OwnedFd>>,
    queue: VecDeque<Piece>,
    accepted: u64,
    then: Then,
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
    /// Takes room for these bytes, or says how much there is.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, WriteError> {
        let full = || WriteError::QueueFull { bytes, room: self.room.available_permits() };
        let count = u32::try_from(bytes).map_err(|_| full())?;
        Arc::clone(&self.room).try_acquire_many_owned(count).map_err(|_| full())
    }
}

impl StdinQueue {
    pub(crate) fn new(end: OwnedFd, end_of_file: EndOfFile) -> io::Result<(Self, StdinGate)> {
        let first = StdinState { written: 0, open: StdinOpen::Open };
        let (state, watched) = watch::channel(first);
        let pipe = readiness::watch(end, Interest::WRITABLE)?;
        let queue = Self {
            pipe: Some(pipe),
            queue: VecDeque::new(),
            accepted: 0,
            then: Then::KeepOpen,
            mid_line: false,
            end_of_file,
            state,
        };
        let room = Arc::new(Semaphore::new(QUEUE_BYTES));
        Ok((queue, StdinGate { room, state: watched }))
    }

    /// Queues all that the command will ever read.
    pub(crate) fn give(&mut self, input: Vec<u8>, permit: OwnedSemaphorePermit) {
        // Nobody waits for the answer to what is known to fit.
        let (reply, _) = oneshot::channel();
        self.take(Write { bytes: input, offset: Some(0), then: Then::Close, permit, reply });
    }

    /// Queues a write and answers it. Bytes that an earlier write has brought are not queued again.
    pub(crate) fn take(&mut self, write: Write) {
        let Write { bytes, offset, then, permit, reply } = write;
        let answer = self.judge(offset.unwrap_or(self.accepted), bytes.len(), then);
        if let Ok(known) = answer {
            self.accepted += (bytes.len() - known) as u64;
            if known < bytes.len() {
                self.mid_line = bytes.last() != Some(&b'\n');
                self.queue.push_back(Piece { bytes, done: known, permit: Some(permit) });
            }
            if then == Then::Close && self.then == Then::KeepOpen {
                self.close_behind();
            }
        }
        // A caller that went away does not need to know.
        _ = reply.send(answer.map(|_| Written { accepted: self.accepted }));
    }

    /// How many of the bytes are known already, or why the write is refused.
    fn judge(&self, offset: u64, len: usize, then: Then) -> Result<usize, WriteError> {
        let expected = self.accepted;
        let known =
            expected.checked_sub(offset).ok_or(WriteError::Gap { given: offset, expected })?;
        let known = usize::try_from(known).unwrap_or(usize::MAX).min(len);
        match self.state.borrow().open {
            StdinOpen::Broken => Err(WriteError::Broken),
            // A repetition of what was accepted, or of the close, is no news.
            StdinOpen::Open if self.then == Then::KeepOpen => Ok(known),
            StdinOpen::Open | StdinOpen::Closed
                if known == len && (len > 0 || then == Then::Close) =>
            {
                Ok(known)
            }
            StdinOpen::Open | StdinOpen::Closed => Err(WriteError::Closed),
        }
    }

    /// Nothing can follow what is queued.
    fn close_behind(&mut self) {
        self.then = Then::Close;
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
        if self.then == Then::Close && self.queue.is_empty() && self.pipe.is_some() {
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
