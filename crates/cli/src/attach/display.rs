//! Standard output, written without ever standing in the way of a key or a signal.

use std::io;
use std::os::fd::OwnedFd;

use lastbyte_sys::readiness::{Interest, watch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::stdio::stdout;
use rustix::termios::{QueueSelector, isatty, tcflush};
use tokio::io::unix::AsyncFd;

use crate::own_streams;

#[derive(Debug)]
pub(crate) struct Display {
    /// `None` for a file, which never waits.
    watched: Option<AsyncFd<OwnedFd>>,
    pub(crate) is_terminal: bool,
}

/// A pipe that has room has room for this much.
const PIECE: usize = 4096;
/// How long a terminal that is to be put in order is waited for.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

impl Display {
    /// Must be called on a runtime.
    pub(crate) fn open() -> Self {
        let is_terminal = isatty(stdout());
        let own = match is_terminal {
            true => own_description().or_else(|_| fcntl_dupfd_cloexec(stdout(), 3)),
            false => fcntl_dupfd_cloexec(stdout(), 3),
        };
        let watched = own.map_err(io::Error::from).and_then(|fd| watch(fd, Interest::WRITABLE));
        Self { watched: watched.ok(), is_terminal }
    }

    /// Writes the beginning of these bytes and says how many. Cancel-safe.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(PIECE)];
        let Some(watched) = &self.watched else { return Ok(own_streams::write_stdout(bytes)?) };
        loop {
            let mut ready = watched.writable().await?;
            // One that is not ours alone may wait in spite of what was heard of it.
            match has_room(watched.get_ref(), Timespec::default()) {
                true => match rustix::io::write(watched.get_ref(), bytes) {
                    Err(Errno::AGAIN) => ready.clear_ready(),
                    Err(Errno::INTR) => {}
                    written => return Ok(written?),
                },
                false => ready.clear_ready(),
            }
        }
    }

    /// Writes all of a few bytes now. A terminal that does not take them loses what it has not
    /// shown yet; one that is gone needs nothing.
    pub(crate) fn write_now(&self, mut bytes: &[u8]) {
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

/// The same terminal by a description of our own: this one never waits, those of others stay as they are.
fn own_description() -> Result<OwnedFd, Errno> {
    let never_wait = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    open("/proc/self/fd/1", never_wait, Mode::empty())
}

/// An error is room, too: the write says what it is.
fn has_room(fd: &OwnedFd, wait: Timespec) -> bool {
    !matches!(poll(&mut [PollFd::new(fd, PollFlags::OUT)], Some(&wait)), Ok(0) | Err(Errno::INTR))
}
