//! Pipe to log: every byte a command writes goes through here, and nothing else does.
//!
//! A step is cancel-safe: a byte is either still in the pipe or already in the log, whenever the
//! step is dropped. The pump says when all pipes are at their end; it never decides that a
//! process has ended, but without it nobody can.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};

use lastbyte_output::log::{Extent, Pulled, Stream, Writer};
use lastbyte_sys::pipe::{self, Readiness};
use lastbyte_sys::procfs::pipe_inode;
use lastbyte_sys::readiness::{self, Interest};
use lastbyte_sys::spawn::OutputEnds;
use tokio::io::unix::AsyncFd;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;

use crate::ending::{Closing, Holders, Kept};

/// Moves at most this much before the owner looks at exit, mailbox and timers.
const STEP: usize = 1 << 20;
/// A pipe that was found full this often in a row is worth a larger buffer.
const HOT: u32 = 8;
const LARGE_PIPE: usize = 1 << 20;
/// An unprivileged user can have 64 large pipes; past that all his new pipes shrink to two pages.
pub(crate) const MOST_LARGE_PIPES: usize = 16;

/// The open pipes of a process and the log they go to.
#[derive(Debug)]
pub(crate) struct Pump {
    sources: Vec<Source>,
    writer: Writer,
    /// Which source is asked first, so that neither stream starves the other.
    turn: usize,
    moved_since_yield: usize,
    large_pipes: Arc<Semaphore>,
}

#[derive(Debug)]
struct Source {
    pipe: AsyncFd<OwnedFd>,
    stream: Stream,
    full_in_a_row: u32,
    /// Held while the pipe is large.
    large: Option<OwnedSemaphorePermit>,
}

/// Proof that the output of a leader that has exited is stored. Only a pump makes one.
#[derive(Debug)]
pub struct Drained {
    final_len: u64,
    closing: Closing,
    kept: Kept,
}

impl Drained {
    pub fn final_len(&self) -> u64 {
        self.final_len
    }

    pub(crate) fn into_parts(self) -> (Closing, Kept) {
        (self.closing, self.kept)
    }

    /// Names those who hold the output open, if anybody does.
    pub(crate) fn held_by(mut self, holders: Holders) -> Self {
        if let Closing::Held(unknown) = &mut self.closing {
            *unknown = holders;
        }
        self
    }
}

impl Pump {
    pub(crate) fn new(
        ends: OutputEnds,
        writer: Writer,
        large_pipes: Arc<Semaphore>,
    ) -> io::Result<Self> {
        let sources = match ends {
            OutputEnds::Merged(pipe) => vec![Source::new(pipe, Stream::Out)?],
            OutputEnds::Split { stdout, stderr } => {
                vec![Source::new(stdout, Stream::Out)?, Source::new(stderr, Stream::Err)?]
            }
        };
        Ok(Self { sources, writer, turn: 0, moved_since_yield: 0, large_pipes })
    }

    /// Every pipe is at its end.
    pub(crate) fn ended(&self) -> bool {
        self.sources.is_empty()
    }

    /// Waits until something is ready and stores one step of it; returns how many bytes, 0 when a
    /// pipe came to its end. Waits for ever once all have. Cancel-safe.
    pub(crate) async fn step(&mut self) -> usize {
        if self.moved_since_yield >= STEP {
            // A flood is always ready: without this nobody else on this thread would be.
            yield_now().await;
            self.moved_since_yield = 0;
        }
        let moved = poll_fn(|context| self.poll_step(context)).await;
        self.moved_since_yield += moved;
        moved
    }

    /// Stores what lies ready in every pipe at this instant and no more, so that it ends even
    /// under a flood. Returns how many bytes.
    pub(crate) fn pass(&mut self) -> usize {
        let Self { sources, writer, .. } = self;
        let mut moved = 0;
        sources.retain(|source| {
            moved += source.pass(writer);
            pipe::readiness(&source.pipe) != Ok(Readiness::End)
        });
        moved
    }

    pub(crate) fn extent(&self) -> Extent {
        self.writer.extent()
    }

    /// Gives back what `published` calls dropped.
    pub(crate) fn give_back(&mut self, published: &Extent) {
        self.writer.give_back(published);
    }

    /// Fixes the final length. What the pump stores from now on is late output.
    pub(crate) fn finish(&mut self) -> Drained {
        let closing = match self.ended() {
            true => Closing::Eof,
            false => Closing::Held(Holders::Unknown),
        };
        let final_len = self.writer.finish();
        let kept = Kept::of(&self.writer.extent().dropped, self.writer.failed());
        Drained { final_len, closing, kept }
    }

    /// The open pipes, as `/proc` names them.
    pub(crate) fn pipe_inodes(&self) -> Vec<u64> {
        self.sources.iter().filter_map(|source| pipe_inode(&source.pipe)).collect()
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<usize> {
        let count = self.sources.len();
        for nth in 0..count {
            let index = (self.turn + nth) % count;
            let Some(source) = self.sources.get_mut(index) else { continue };
            match source.poll_pull(&mut self.writer, context) {
                Poll::Ready(Pulled::Bytes(moved)) => {
                    source.grow_if_hot(moved, &self.large_pipes);
                    self.turn = index + 1;
                    return Poll::Ready(moved);
                }
                Poll::Ready(Pulled::End) => {
                    self.sources.remove(index);
                    return Poll::Ready(0);
                }
                Poll::Ready(Pulled::Nothing) | Poll::Pending => {}
            }
        }
        Poll::Pending
    }
}

impl Source {
    fn new(pipe: OwnedFd, stream: Stream) -> io::Result<Self> {
        let pipe = readiness::watch(pipe, Interest::READABLE)?;
        Ok(Self { pipe, stream, full_in_a_row: 0, large: None })
    }

    /// `Pending` has always registered the waker.
    fn poll_pull(&mut self, writer: &mut Writer, context: &mut Context<'_>) -> Poll<Pulled> {
        loop {
            let mut ready = match self.pipe.poll_read_ready(context) {
                Poll::Ready(Ok(ready)) => ready,
                // The runtime is shutting down, and with it this owner.
                Poll::Ready(Err(_)) | Poll::Pending => return Poll::Pending,
            };
            match writer.pull(self.pipe.get_ref(), self.stream, STEP, now_ms()) {
                Pulled::Nothing => ready.clear_ready(),
                pulled => return Poll::Ready(pulled),
            }
        }
    }

    fn pass(&self, writer: &mut Writer) -> usize {
        let ready = pipe::ready(&self.pipe).unwrap_or(0);
        let mut left = usize::try_from(ready).unwrap_or(usize::MAX);
        let mut moved = 0;
        while left > 0 {
            match writer.pull(self.pipe.get_ref(), self.stream, left, now_ms()) {
                Pulled::Bytes(count) => {
                    moved += count;
                    left = left.saturating_sub(count);
                }
                Pulled::Nothing | Pulled::End => break,
            }
        }
        moved
    }

    fn grow_if_hot(&mut self, moved: usize, large_pipes: &Arc<Semaphore>) {
        const USUAL: usize = 64 * 1024;
        self.full_in_a_row = if moved >= USUAL { self.full_in_a_row + 1 } else { 0 };
        if self.full_in_a_row != HOT || self.large.is_some() {
            return;
        }
        let Ok(permit) = Arc::clone(large_pipes).try_acquire_owned() else { return };
        if pipe::grow(&self.pipe, LARGE_PIPE).is_ok() {
            self.large = Some(permit);
        }
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
