//! Our terminal while a process uses it: shows what the process writes, tracks what that changes, and
//! restores the terminal afterwards, whatever the reason. Writing never blocks a key or a signal.

use std::io;
use std::os::fd::OwnedFd;

use bytes::{Buf, Bytes};
use lastbyte_sys::readiness::{Interest, watch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec, retry_on_intr};
use rustix::stdio::stdout;
use rustix::termios::{QueueSelector, isatty, tcflush};
use tokio::io::unix::AsyncFd;

use super::modes::{Drawing, Modes};
use super::sequences::{Item, Sequences};
use crate::stdio::{self, Raw};

#[derive(Debug)]
pub(crate) struct TerminalGuard {
    display: Display,
    /// If every key is to go to the process.
    raw: Option<Raw>,
    wants_raw: bool,
    /// What has come and is not shown yet.
    waiting: Bytes,
    sequences: Sequences,
    modes: Modes,
    /// What was shown last on the main screen was no newline.
    pub(crate) mid_line: bool,
    restored: bool,
}

/// Ends a sequence or a string in whose middle the output was left.
const CANCEL_SEQUENCE: &str = "\x18\x1b\\";

impl TerminalGuard {
    /// Must be called on a runtime.
    pub(crate) fn new(wants_raw: bool) -> Self {
        Self {
            display: Display::open(),
            raw: wants_raw.then(Raw::enter).flatten(),
            wants_raw,
            waiting: Bytes::new(),
            sequences: Sequences::default(),
            modes: Modes::default(),
            mid_line: false,
            restored: false,
        }
    }

    /// To be shown as if the process had written it.
    pub(crate) fn add(&mut self, bytes: impl Into<Bytes>) {
        self.waiting = bytes.into();
    }

    pub(crate) fn has_output(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Shows some of what is there. Cancel-safe.
    pub(crate) async fn show(&mut self) -> io::Result<()> {
        let count = self.display.write(&self.waiting).await?;
        for byte in &self.waiting[..count] {
            let Some(item) = self.sequences.take(*byte) else { continue };
            self.modes.apply(item);
            match item {
                _ if self.modes.drawing() == Drawing::Screen => {}
                Item::Text(_) => self.mid_line = true,
                Item::Control(b'\n') => self.mid_line = false,
                Item::Control(_) | Item::Csi(_) | Item::Escape(_) | Item::String => {}
            }
        }
        self.waiting.advance(count);
        Ok(())
    }

    pub(crate) fn drawing(&self) -> Drawing {
        self.modes.drawing()
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.display.is_terminal
    }

    /// Queues what restores the terminal after all output, without blocking.
    pub(crate) fn queue_restore(&mut self) {
        self.add(self.restore_sequence());
    }

    /// Restores the terminal now; one that takes nothing loses what it has not shown yet.
    pub(crate) fn restore(&mut self) {
        self.display.write_now(self.restore_sequence().as_bytes());
        self.restored = true;
        self.raw = None;
    }

    /// Empty for what is no terminal, or was restored.
    fn restore_sequence(&self) -> String {
        if self.restored || !self.display.is_terminal {
            return String::new();
        }
        let cancel = if self.sequences.incomplete().is_empty() { "" } else { CANCEL_SEQUENCE };
        format!("{cancel}{}", self.modes.turn_off())
    }

    /// Sets the terminal to what the process expects, after it was restored or another program
    /// used it.
    pub(crate) fn reapply(&mut self) {
        match &self.raw {
            Some(raw) => raw.enter_again(),
            None if self.wants_raw => self.raw = Raw::enter(),
            None => {}
        }
        if self.display.is_terminal {
            // If we were stopped by SIGSTOP, the terminal was not restored.
            let before = self.restore_sequence();
            let on = self.modes.turn_on();
            // What comes next continues the sequence that was cancelled.
            let all = [before.as_bytes(), on.as_bytes(), self.sequences.incomplete()].concat();
            self.display.write_now(&all);
        }
        self.restored = false;
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        self.restore();
    }
}

#[derive(Debug)]
struct Display {
    /// `None` for a file, which never waits.
    watched: Option<AsyncFd<OwnedFd>>,
    is_terminal: bool,
}

/// A pipe that has room has room for this much.
const PIECE: usize = 4096;
/// How long to wait for a terminal that is being restored.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

impl Display {
    /// Must be called on a runtime.
    fn open() -> Self {
        let is_terminal = isatty(stdout());
        let own = match is_terminal.then(own_description) {
            Some(Ok(own)) => Ok(own),
            Some(Err(_)) | None => fcntl_dupfd_cloexec(stdout(), 3),
        };
        let watched = own.map_err(io::Error::from).and_then(|fd| watch(fd, Interest::WRITABLE));
        Self { watched: watched.ok(), is_terminal }
    }

    /// Writes the beginning of these bytes and says how many. Cancel-safe.
    async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PIECE)];
        let Some(watched) = &self.watched else { return Ok(stdio::write_some(bytes)?) };
        let write = |fd: &OwnedFd| {
            // One that is not ours alone may wait in spite of what was heard of it.
            if !has_room(fd, Timespec::default()) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(retry_on_intr(|| rustix::io::write(fd, bytes))?)
        };
        watched.async_io(Interest::WRITABLE, write).await
    }

    /// Writes all of a few bytes now. A terminal that does not take them loses what it has not
    /// shown yet; one that is gone needs nothing.
    fn write_now(&self, mut bytes: &[u8]) {
        let Some(fd) = self.watched.as_ref().map(AsyncFd::get_ref) else { return };
        while !bytes.is_empty() {
            if !has_room(fd, Timespec::default()) {
                // Where nothing can be thrown away it is waited for.
                _ = tcflush(fd, QueueSelector::OFlush);
                if !has_room(fd, PATIENCE) {
                    return;
                }
            }
            match rustix::io::write(fd, bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(_) => return,
            }
        }
    }
}

/// The same terminal by our own open file description: it is non-blocking, and those of other
/// programs are not changed.
fn own_description() -> Result<OwnedFd, Errno> {
    let never_wait = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    open("/proc/self/fd/1", never_wait, Mode::empty())
}

/// An error is room, too: the write says what it is.
fn has_room(fd: &OwnedFd, wait: Timespec) -> bool {
    !matches!(poll(&mut [PollFd::new(fd, PollFlags::OUT)], Some(&wait)), Ok(0) | Err(Errno::INTR))
}
