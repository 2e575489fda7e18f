//! Pipe to log: every byte a command writes goes through here, and nothing else does.
//!
//! A step is cancel-safe: a byte is either still in the pipe or already in the log, whenever the
//! step is dropped. The pump says when all pipes are at their end; it never decides that a
//! process has ended, but without it nobody can.

mod masking;
mod sink;
mod source;
mod staged;

use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lastbyte_output::log::{Pulled, ShortLog, Stream, Writer};
use lastbyte_sys::pty::WindowSize;
use lastbyte_sys::{Errno, leftover_reader};
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::clock::AFTER_WAITERS;
use crate::owner::ends::Ends;
use crate::owner::holds::Holds;
use crate::process::ending::{Closing, Holders, Kept};
use sink::Sink;
use source::OutputEnd;

pub(crate) use masking::Masking;

/// The most to move before the owner checks exit, mailbox and timers, and before other tasks of the
/// thread run: about 0.1 ms of copying.
const STEP: usize = 256 << 10;
/// How long to wait for a descriptor before the next try.
const SHORTAGE: Duration = Duration::from_millis(10);
/// An unprivileged user can have 64 large pipes; after that all new pipes shrink to two pages.
pub(crate) const MOST_LARGE_PIPES: usize = 16;

/// The open pipes of a process and the log they go to.
#[derive(Debug)]
pub(crate) struct Pump {
    sources: Vec<OutputEnd>,
    /// At their end, to be closed when waiters have run: that takes time which they need.
    ended: Vec<OutputEnd>,
    close_at: Option<Instant>,
    sink: Sink,
    /// Which source is tried first, so that neither stream starves the other.
    turn: usize,
    moved_since_yield: usize,
    large_pipes: Arc<Semaphore>,
    /// The readers that hold the output back, if the launch allows it.
    holds: Option<Holds>,
}

/// Proof that the output of a leader that has exited is stored. Only a pump makes one.
#[derive(Debug)]
pub struct Drained {
    final_len: u64,
    closing: Closing,
    kept: Kept,
    masked: u64,
}

impl Drained {
    pub fn final_len(&self) -> u64 {
        self.final_len
    }

    pub(crate) fn into_parts(self) -> (Closing, Kept, u64) {
        (self.closing, self.kept, self.masked)
    }

    /// Names the processes that hold the output open, if any do.
    pub(crate) fn held_by(mut self, holders: Holders) -> Self {
        if let Closing::Held(unknown) = &mut self.closing {
            *unknown = holders;
        }
        self
    }
}

impl Pump {
    /// Calls `log` last: nothing fails after it.
    pub(crate) fn new(
        ends: Ends,
        log: impl FnOnce() -> io::Result<Writer>,
        large_pipes: Arc<Semaphore>,
        holds: Option<Holds>,
    ) -> io::Result<Self> {
        let Ends { output, error, gathered, gathering, terminal, masking, .. } = ends;
        let output = match (output, gathered.zip(gathering)) {
            (Some(ours), Some(pipe)) => Some(OutputEnd::pty(ours, terminal, pipe)?),
            (Some(pipe), None) => Some(OutputEnd::pipe(pipe, Stream::Out)?),
            (None, _) => None,
        };
        let error = error.map(|pipe| OutputEnd::pipe(pipe, Stream::Err)).transpose()?;
        let sources = output.into_iter().chain(error).collect();
        let sink = Sink::new(log()?, masking);
        Ok(Self {
            sources,
            ended: Vec::new(),
            close_at: None,
            sink,
            turn: 0,
            moved_since_yield: 0,
            large_pipes,
            holds,
        })
    }

    /// Enters what is open into a slot that is about to be ours.
    pub(crate) fn enter(&self) {
        self.sources.iter().for_each(OutputEnd::enter);
        self.sink.enter();
    }

    pub(crate) fn log(&self) -> &Writer {
        &self.sink.writer
    }

    pub(super) fn log_mut(&mut self) -> &mut Writer {
        &mut self.sink.writer
    }

    pub(crate) fn into_log(self) -> Writer {
        self.sink.writer
    }

    /// Every pipe is at its end.
    pub(crate) fn ended(&self) -> bool {
        self.sources.is_empty()
    }

    /// Waits until something is ready and stores one step of it; returns how many bytes, 0 at the end
    /// of a pipe. Waits forever once all pipes are at their end. Cancel-safe.
    pub(crate) async fn step(&mut self) -> usize {
        if self.moved_since_yield >= STEP {
            // A flood is always ready: without this no other task of this thread would run.
            yield_now().await;
            self.moved_since_yield = 0;
        }
        self.until_caught_up().await;
        loop {
            match poll_fn(|context| self.poll_step(context)).await {
                Pulled::Bytes(moved) => {
                    self.moved_since_yield += moved;
                    return moved;
                }
                Pulled::End => return 0,
                Pulled::Nothing | Pulled::NotNow => sleep_until(Instant::now() + SHORTAGE).await,
            }
        }
    }

    /// Stores what is ready in every pipe at this instant and hardly more, so that it ends even
    /// under a flood. Calls `stored` after each append. Returns how many bytes.
    pub(crate) fn pass(&mut self, mut stored: impl FnMut(&mut Writer)) -> usize {
        let Self { sources, sink, holds, .. } = self;
        sink.writer.keep_from(holds.as_ref().and_then(Holds::floor));
        let mut moved = 0;
        let ended = sources.extract_if(.., |source| {
            let (bytes, at_end) = source.pass(sink, &mut stored);
            moved += bytes;
            at_end
        });
        let ended: Vec<_> = ended.collect();
        ended.into_iter().for_each(|source| self.close_soon(source));
        moved
    }

    /// The leader has exited: from now on nothing waits for a descriptor, and a terminal that nobody
    /// has open is at its end.
    pub(crate) fn leader_exited(&mut self) {
        self.sink.writer.hurry();
        self.sources.iter_mut().for_each(OutputEnd::let_terminal_go);
    }

    /// Fixes the final length. What the pump stores from now on is late output.
    pub(crate) fn finish(&mut self) -> Drained {
        let closing = if self.ended() { Closing::Eof } else { Closing::Held(Holders::Unknown) };
        let masked = self.sink.end();
        let writer = &mut self.sink.writer;
        let final_len = writer.finish();
        let kept = Kept::new(&writer.extent().dropped, writer.failed());
        Drained { final_len, closing, kept, masked }
    }

    /// All of the output, if it is short and nobody can add to it. Its file is no longer needed.
    pub(crate) fn settle(&self) -> Option<&ShortLog> {
        self.ended().then(|| self.sink.writer.settle()).flatten()
    }

    /// How `/proc` shows the files that holders of the output have open.
    pub(crate) fn held_as(&self) -> Vec<PathBuf> {
        self.sources.iter().filter_map(OutputEnd::held_as).collect()
    }

    /// Changes the size of the terminal; `None` if there is none (any more).
    pub(crate) fn resize(&self, size: WindowSize) -> Option<Result<(), Errno>> {
        self.sources.iter().find_map(|source| source.resize(size))
    }

    /// The size that the terminal has now; `None` if there is none (any more).
    pub(crate) fn terminal_size(&self) -> Option<WindowSize> {
        self.sources.iter().find_map(OutputEnd::size)
    }

    /// Our end of the terminal and the terminal itself, while the leader lives.
    pub(crate) fn terminal(&self) -> Option<(BorrowedFd<'_>, BorrowedFd<'_>)> {
        self.sources.iter().find_map(OutputEnd::terminal)
    }

    /// Leaves a process behind that reads what comes after this program has ended.
    pub(super) fn leave_reader(&self) -> io::Result<()> {
        let ends: Vec<_> = self.sources.iter().map(AsFd::as_fd).collect();
        leftover_reader::leave(&ends)
    }

    /// Waits while the slowest pinned reader is a quota behind. Cancel-safe.
    async fn until_caught_up(&mut self) {
        let Some(holds) = &self.holds else { return };
        let writer = &mut self.sink.writer;
        holds.until_within(writer.extent().len, writer.max_lead()).await;
        writer.keep_from(holds.floor());
    }

    /// `Pending` has always registered the waker.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Pulled> {
        let count = self.sources.len();
        for index in (self.turn..self.turn + count).map(|turn| turn % count) {
            let Poll::Ready(pulled) = self.sources[index].poll_pull(&mut self.sink, context) else {
                continue;
            };
            match pulled {
                Pulled::Bytes(moved) => {
                    self.sources[index].grow_if_hot(moved, &self.large_pipes);
                    self.turn = index + 1;
                }
                Pulled::End => {
                    let source = self.sources.remove(index);
                    self.close_soon(source);
                }
                Pulled::Nothing | Pulled::NotNow => {}
            }
            return Poll::Ready(pulled);
        }
        // Other tasks of the thread run now.
        self.moved_since_yield = 0;
        Poll::Pending
    }

    /// When to call [`Pump::close_ended`], if at all.
    pub(super) fn close_at(&self) -> Option<Instant> {
        self.close_at
    }

    /// Closes the pipes that are at their end.
    pub(super) fn close_ended(&mut self) {
        (self.ended, self.close_at) = (Vec::new(), None);
    }

    /// At once if it has a large buffer that others might want.
    fn close_soon(&mut self, source: OutputEnd) {
        if !source.is_large() {
            self.ended.push(source);
            self.close_at.get_or_insert_with(|| Instant::now() + AFTER_WAITERS);
        }
    }
}
