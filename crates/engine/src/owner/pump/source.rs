//! Where output comes from: a pipe, or a pty through a pipe.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use lastbyte_output::log::{Pulled, Stream, Writer};
use lastbyte_sys::Errno;
use lastbyte_sys::pipe;
use lastbyte_sys::procfs::link_target;
use lastbyte_sys::pty::{self, WindowSize};
use lastbyte_sys::readiness::{self, Interest};
use lastbyte_sys::registry::Entered;
use tokio::io::unix::AsyncFd;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::STEP;
use super::sink::Sink;

/// One open end of a command's output.
#[derive(Debug)]
pub(super) struct OutputEnd {
    end: AsyncFd<Entered>,
    stream: Stream,
    kind: EndKind,
}

#[derive(Debug)]
enum EndKind {
    Pipe {
        lately: Lately,
        /// Held while the pipe is large.
        large: Option<OwnedSemaphorePermit>,
    },
    /// A pty cannot be spliced into a file, only into a pipe: this one.
    Pty {
        read: Entered,
        write: Entered,
        /// Held while the leader lives: it can open its terminal again at any time, and a pty that
        /// nobody has open would look like one at its end.
        terminal: Option<Entered>,
    },
}

/// How much a pipe has brought since then.
#[derive(Debug)]
struct Lately {
    since: Instant,
    bytes: usize,
}

/// A pipe that brings this much within [`WINDOW`] is worth a larger buffer. Not one that is found
/// full again and again: a pump that keeps up with the command never finds it so.
const HOT: usize = 1 << 20;
/// Long enough for a flood on a machine on which many programs take turns.
const WINDOW: Duration = Duration::from_millis(100);
const USUAL_PIPE: usize = 64 * 1024;
const LARGE_PIPE: usize = 1 << 20;
/// As much as a pty gives at once. The kernel allocates the size of a request before it reads.
const PAGE: usize = 4096;
/// More than the kernel holds back of a pty's output: a pass ends there even under a flood.
const MOST_OF_A_PTY: usize = 256 * 1024;

impl OutputEnd {
    pub(super) fn pipe(end: Entered, stream: Stream) -> io::Result<Self> {
        Self::new(end, stream, EndKind::Pipe { lately: Lately::new(), large: None })
    }

    /// With the two ends of the pipe between terminal and log.
    pub(super) fn pty(
        ours: Entered,
        terminal: Option<Entered>,
        (read, write): (Entered, Entered),
    ) -> io::Result<Self> {
        Self::new(ours, Stream::Out, EndKind::Pty { read, write, terminal })
    }

    fn new(end: Entered, stream: Stream, kind: EndKind) -> io::Result<Self> {
        Ok(Self { end: readiness::watch(end, Interest::READABLE)?, stream, kind })
    }

    /// Into a slot that is about to be ours.
    pub(super) fn enter(&self) {
        self.end.get_ref().enter();
        match &self.kind {
            EndKind::Pipe { .. } => {}
            EndKind::Pty { read, write, terminal } => {
                [read, write].into_iter().chain(terminal).for_each(Entered::enter);
            }
        }
    }

    /// Stores one step of what is ready. `Pending` has always registered the waker.
    pub(super) fn poll_pull(&mut self, sink: &mut Sink, context: &mut Context<'_>) -> Poll<Pulled> {
        loop {
            let mut ready = match self.end.poll_read_ready(context) {
                Poll::Ready(Ok(ready)) => ready,
                // The runtime is shutting down, and with it this owner.
                Poll::Ready(Err(_)) | Poll::Pending => return Poll::Pending,
            };
            match pull(self.end.get_ref(), &self.kind, self.stream, sink, STEP) {
                Pulled::Nothing => ready.clear_ready(),
                pulled => return Poll::Ready(pulled),
            }
        }
    }

    /// Stores what is ready at this instant and hardly more. Returns how many bytes, and whether it
    /// is at its end.
    pub(super) fn pass(
        &self,
        sink: &mut Sink,
        stored: &mut impl FnMut(&mut Writer),
    ) -> (usize, bool) {
        let (mut moved, mut left) = (0, None);
        loop {
            let most = left.unwrap_or(STEP).max(1);
            match pull(self.end.get_ref(), &self.kind, self.stream, sink, most) {
                Pulled::Bytes(count) => {
                    stored(&mut sink.writer);
                    moved += count;
                    left = match left {
                        // Asked only now: usually nothing was ready.
                        None => Some(self.ready()),
                        // This was the check for the end.
                        Some(0) => return (moved, false),
                        Some(left) => Some(left.saturating_sub(count)),
                    };
                }
                Pulled::End => return (moved, true),
                Pulled::Nothing | Pulled::NotNow => return (moved, false),
            }
        }
    }

    fn ready(&self) -> usize {
        match self.kind {
            EndKind::Pipe { .. } => {
                pipe::ready(&self.end).unwrap_or(0).try_into().unwrap_or(usize::MAX)
            }
            // A pty does not say how much is ready; it can only be read until it is empty.
            EndKind::Pty { .. } => MOST_OF_A_PTY,
        }
    }

    pub(super) fn terminal(&self) -> Option<(BorrowedFd<'_>, BorrowedFd<'_>)> {
        match &self.kind {
            EndKind::Pty { terminal: Some(terminal), .. } => {
                Some((self.end.as_fd(), terminal.as_fd()))
            }
            EndKind::Pty { terminal: None, .. } | EndKind::Pipe { .. } => None,
        }
    }

    /// From now on a terminal that nobody has open is at its end.
    pub(super) fn let_terminal_go(&mut self) {
        if let EndKind::Pty { terminal, .. } = &mut self.kind {
            *terminal = None;
        }
    }

    /// How `/proc` shows what a holder has open.
    pub(super) fn held_as(&self) -> Option<PathBuf> {
        link_target(&self.end)
    }

    /// `None` for a pipe.
    pub(super) fn resize(&self, size: WindowSize) -> Option<Result<(), Errno>> {
        match self.kind {
            EndKind::Pipe { .. } => None,
            EndKind::Pty { .. } => Some(pty::resize(&self.end, size)),
        }
    }

    /// `None` for a pipe.
    pub(super) fn size(&self) -> Option<WindowSize> {
        match self.kind {
            EndKind::Pipe { .. } => None,
            EndKind::Pty { .. } => pty::size(&self.end).ok(),
        }
    }

    /// Whether it has a larger buffer, of which there are few.
    pub(super) fn is_large(&self) -> bool {
        matches!(self.kind, EndKind::Pipe { large: Some(_), .. })
    }

    /// Gets a larger buffer if the pipe is a flood and a permit is free.
    pub(super) fn grow_if_hot(&mut self, moved: usize, large_pipes: &Arc<Semaphore>) {
        let EndKind::Pipe { lately, large } = &mut self.kind else { return };
        if large.is_some() || !lately.is_hot(moved) {
            return;
        }
        let Ok(permit) = Arc::clone(large_pipes).try_acquire_owned() else { return };
        if pipe::grow(&self.end, LARGE_PIPE).is_ok() {
            *large = Some(permit);
        }
    }
}

impl Lately {
    fn new() -> Self {
        Self { since: Instant::now(), bytes: 0 }
    }

    /// Whether it is a flood, with these bytes that came now.
    fn is_hot(&mut self, moved: usize) -> bool {
        self.bytes += moved;
        if self.bytes < HOT {
            return false;
        }
        let begun = std::mem::replace(self, Self::new());
        self.since - begun.since <= WINDOW
    }
}

impl AsFd for OutputEnd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

/// At its end, what was held back is stored first, as a step of its own.
fn pull(end: &Entered, kind: &EndKind, stream: Stream, sink: &mut Sink, most: usize) -> Pulled {
    match pull_bytes(end, kind, stream, sink, most) {
        Pulled::End => sink.close(stream),
        pulled => pulled,
    }
}

fn pull_bytes(
    end: &Entered,
    kind: &EndKind,
    stream: Stream,
    sink: &mut Sink,
    most: usize,
) -> Pulled {
    let EndKind::Pty { read, write, .. } = kind else {
        return sink.pull(end, stream, most);
    };
    // What an earlier step could not store is still in the pipe, and comes first.
    match sink.pull(read, stream, most) {
        Pulled::Nothing | Pulled::End => {}
        pulled => return pulled,
    }
    match gather(end, write, most.min(USUAL_PIPE)) {
        Ok(0) => Pulled::End,
        Ok(gathered) => sink.pull(read, stream, gathered),
        Err(Errno::AGAIN) => Pulled::Nothing,
        // A pty that cannot be read is at its end.
        Err(_) => Pulled::End,
    }
}

/// Moves what a pty has ready into the pipe, or as much as fits. A pty gives a page at a time, and to
/// append and publish each page would cost more than to copy it.
fn gather(pty: &Entered, pipe: &Entered, most: usize) -> Result<usize, Errno> {
    let mut gathered = 0;
    while gathered < most {
        match pty::splice_into_pipe(pty, pipe, PAGE.min(most - gathered)) {
            Ok(0) => break,
            Ok(moved) => gathered += moved,
            Err(errno) if gathered == 0 => return Err(errno),
            // The next call returns it again.
            Err(_) => break,
        }
    }
    Ok(gathered)
}
