//! Pipe to log: every byte a command writes goes through here, and nothing else does.
//!
//! A step is cancel-safe: a byte is either still in the pipe or already in the log, whenever the
//! step is dropped. The pump says when all pipes are at their end; it never decides that a
//! process has ended, but without it nobody can.

mod source;

use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use lastbyte_output::log::{Pulled, ShortLog, Stream, Writer};
use lastbyte_sys::Errno;
use lastbyte_sys::pty::WindowSize;
use lastbyte_sys::spawn::OutputEnds;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use crate::owner::holds::Holds;
use crate::process::ending::{Closing, Holders, Kept};
use source::Source;

/// Moves at most this much before the owner looks at exit, mailbox and timers, and before others
/// on the same thread have their turn: about 0.1 ms of copying.
const STEP: usize = 256 << 10;
/// How long a shortage of descriptors is given before the next try.
const SHORTAGE: Duration = Duration::from_millis(10);
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
    /// Who holds the output back, where the launch lets readers do so.
    holds: Option<Holds>,
}

enum Step {
    Moved(usize),
    NotNow,
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
    /// `log` is asked for last: when it has come, nothing can fail any more.
    pub(crate) fn new(
        ends: OutputEnds,
        log: impl FnOnce() -> io::Result<Writer>,
        large_pipes: Arc<Semaphore>,
        holds: Option<Holds>,
    ) -> io::Result<Self> {
        let sources = match ends {
            OutputEnds::Merged(pipe) => vec![Source::pipe(pipe, Stream::Out)?],
            OutputEnds::Split { stdout, stderr } => {
                vec![Source::pipe(stdout, Stream::Out)?, Source::pipe(stderr, Stream::Err)?]
            }
            OutputEnds::Pty { ours, terminal } => vec![Source::pty(ours, terminal)?],
        };
        Ok(Self { sources, writer: log()?, turn: 0, moved_since_yield: 0, large_pipes, holds })
    }

    pub(crate) fn log(&self) -> &Writer {
        &self.writer
    }

    pub(super) fn log_mut(&mut self) -> &mut Writer {
        &mut self.writer
    }

    pub(crate) fn into_log(self) -> Writer {
        self.writer
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
        self.until_room().await;
        loop {
            match poll_fn(|context| self.poll_step(context)).await {
                Step::Moved(moved) => {
                    self.moved_since_yield += moved;
                    return moved;
                }
                Step::NotNow => sleep_until(Instant::now() + SHORTAGE).await,
            }
        }
    }

    /// Stores what lies ready in every pipe at this instant and hardly more, so that it ends even
    /// under a flood. `stored` is called after each append. Returns how many bytes.
    pub(crate) fn pass(&mut self, mut stored: impl FnMut(&mut Writer)) -> usize {
        let Self { sources, writer, holds, .. } = self;
        writer.keep_from(holds.as_ref().and_then(Holds::floor));
        let mut moved = 0;
        let ended = sources.extract_if(.., |source| {
            let (bytes, at_end) = source.pass(writer, &mut stored);
            moved += bytes;
            at_end
        });
        ended.for_each(Source::close_soon);
        moved
    }

    /// The leader has exited, and its bytes are to be stored: from now on nothing is put off, and
    /// a terminal that nobody has open is at its end.
    pub(crate) fn leader_exited(&mut self) {
        self.writer.hurry();
        self.sources.iter_mut().for_each(Source::let_terminal_go);
    }

    /// Fixes the final length. What the pump stores from now on is late output.
    pub(crate) fn finish(&mut self) -> Drained {
        let closing = if self.ended() { Closing::Eof } else { Closing::Held(Holders::Unknown) };
        let final_len = self.writer.finish();
        let kept = Kept::new(&self.writer.extent().dropped, self.writer.failed());
        Drained { final_len, closing, kept }
    }

    /// All of the output, if nobody can add to it and it is short. Its file is not needed any more.
    pub(crate) fn settle(&self) -> Option<&ShortLog> {
        self.ended().then(|| self.writer.settle()).flatten()
    }

    /// What a holder of the output has open, as `/proc` shows it.
    pub(crate) fn held_as(&self) -> Vec<PathBuf> {
        self.sources.iter().filter_map(Source::held_as).collect()
    }

    /// Changes the size of the terminal; `None` when there is none (any more).
    pub(crate) fn resize(&self, size: WindowSize) -> Option<Result<(), Errno>> {
        self.sources.iter().find_map(|source| source.resize(size))
    }

    /// Waits while the slowest pinned reader is a quota behind. Cancel-safe.
    async fn until_room(&mut self) {
        let Some(holds) = &self.holds else { return };
        holds.until_room(self.writer.extent().len, self.writer.room()).await;
        self.writer.keep_from(holds.floor());
    }

    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Step> {
        let count = self.sources.len();
        for nth in 0..count {
            let index = (self.turn + nth) % count;
            let Some(source) = self.sources.get_mut(index) else { continue };
            match source.poll_pull(&mut self.writer, context) {
                Poll::Ready(Pulled::Bytes(moved)) => {
                    source.grow_if_hot(moved, &self.large_pipes);
                    self.turn = index + 1;
                    return Poll::Ready(Step::Moved(moved));
                }
                Poll::Ready(Pulled::End) => {
                    self.sources.remove(index).close_soon();
                    return Poll::Ready(Step::Moved(0));
                }
                Poll::Ready(Pulled::NotNow) => return Poll::Ready(Step::NotNow),
                Poll::Ready(Pulled::Nothing) | Poll::Pending => {}
            }
        }
        Poll::Pending
    }
}
