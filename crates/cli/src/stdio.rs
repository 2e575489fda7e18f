//! The program's own three streams, and the terminal that they may be.
//!
//! Any of them may be shared with other programs, one of which may have made it non-blocking: a
//! read or write that would have to wait then waits here.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use anyhow::Context;
use lastbyte_engine::WindowSize;
use lastbyte_sys::readiness::{Interest, watch};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat, tell};
use rustix::io::{Errno, fcntl_dupfd_cloexec, ioctl_fionread, retry_on_intr};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};

pub(crate) fn stdin_is_terminal() -> bool {
    rustix::termios::isatty(stdin())
}

/// Whether standard input is a pipe or a file from which something can be read at once. Never waits.
pub(crate) fn stdin_has_data() -> bool {
    let Ok(found) = fstat(stdin()) else { return false };
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => tell(stdin()).is_ok_and(|at| at < found.st_size.cast_unsigned()),
        FileType::Fifo => ioctl_fionread(stdin()).is_ok_and(|count| count > 0),
        _ => false,
    }
}

/// Whether standard output and error lead to the same place.
pub(crate) fn stdout_is_stderr() -> bool {
    match (fstat(stdout()), fstat(stderr())) {
        (Ok(out), Ok(err)) => (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino),
        _ => false,
    }
}

/// Reads what there is, waiting for the first byte; 0 is the end.
pub(crate) fn read_stdin(into: &mut [u8]) -> Result<usize, Errno> {
    waiting(stdin(), PollFlags::IN, || rustix::io::read(stdin(), &mut *into))
}

/// Writes what fits, waiting until something does.
pub(crate) fn write_some(bytes: &[u8]) -> Result<usize, Errno> {
    waiting(stdout(), PollFlags::OUT, || rustix::io::write(stdout(), bytes))
}

/// Writes all of it, waiting for as long as it takes.
pub(crate) fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let count = waiting(to, PollFlags::OUT, || rustix::io::write(to, bytes))?;
        bytes = &bytes[count..];
    }
    Ok(())
}

/// Whether standard output has a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    There,
    Gone,
}

/// Writes all of it to standard output. A reader that is gone is not an error.
pub(crate) fn write_stdout(bytes: &[u8]) -> anyhow::Result<Reader> {
    match write_all(stdout(), bytes) {
        Ok(()) => Ok(Reader::There),
        Err(Errno::PIPE) => Ok(Reader::Gone),
        Err(errno) => Err(errno).context("cannot write to standard output"),
    }
}

/// Waits until nobody reads standard output any more, if that can be known: a file and a terminal
/// have no reader. Must be called on a runtime.
pub(crate) async fn stdout_reader_gone() {
    let watched = fcntl_dupfd_cloexec(stdout(), 3).map_err(io::Error::from);
    match watched.and_then(|stdout| watch(stdout, Interest::ERROR)) {
        Ok(stdout) if stdout.ready(Interest::ERROR).await.is_ok() => {}
        Ok(_) | Err(_) => std::future::pending().await,
    }
}

/// Closes standard input, so that its writer notices that nobody reads.
pub(crate) fn release_stdin() {
    if let Ok(null) = std::fs::File::open("/dev/null") {
        // If it fails, standard input stays open, as it was.
        _ = rustix::stdio::dup2_stdin(null);
    }
}

fn waiting(
    on: BorrowedFd<'_>,
    until: PollFlags,
    mut call: impl FnMut() -> Result<usize, Errno>,
) -> Result<usize, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut ready = [PollFd::from_borrowed_fd(on, until)];
                retry_on_intr(|| poll(&mut ready, None))?;
            }
            answer => return answer,
        }
    }
}

/// Standard input's terminal in raw mode: every key goes to the command, Ctrl-C too. Put back as it
/// was when this is dropped, by a panic as well.
#[derive(Debug)]
pub(crate) struct Raw {
    /// Ours alone: standard input itself is let go when the command takes no more.
    terminal: OwnedFd,
    before: Termios,
}

/// The size of a terminal that does not report one.
const USUAL: WindowSize = WindowSize { rows: 24, cols: 80 };

impl Raw {
    /// `None` when standard input is no terminal, or not ours to change.
    pub(crate) fn enter() -> Option<Self> {
        let terminal = fcntl_dupfd_cloexec(stdin(), 3).ok()?;
        let before = tcgetattr(&terminal).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(&terminal, OptionalActions::Now, &raw).ok()?;
        Some(Self { terminal, before })
    }

    /// Again, after another program may have changed it. What it is restored to stays the same.
    pub(crate) fn enter_again(&self) {
        let mut raw = self.before.clone();
        raw.make_raw();
        // A terminal that is gone is noticed by the next read.
        _ = tcsetattr(&self.terminal, OptionalActions::Now, &raw);
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing put back.
        _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// The size of whichever of our streams is a terminal.
pub(crate) fn size() -> WindowSize {
    let sizes = [stdout(), stdin(), stderr()].into_iter().filter_map(|fd| tcgetwinsize(fd).ok());
    let mut known = sizes.filter(|size| size.ws_row > 0 && size.ws_col > 0);
    known.next().map_or(USUAL, |size| WindowSize { rows: size.ws_row, cols: size.ws_col })
}

/// How many characters a line of standard output has; no bound where that is no terminal.
pub(crate) fn width_of_stdout() -> Option<usize> {
    tcgetwinsize(stdout()).ok().map(|size| size.ws_col.into()).filter(|width| *width > 0)
}

/// Hears when our terminal is given another size. Must be called on a runtime.
pub(crate) fn size_changes() -> anyhow::Result<Signal> {
    signal(SignalKind::window_change()).context("cannot listen for signals")
}
