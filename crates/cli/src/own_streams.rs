//! The program's own three streams.
//!
//! Any of them may be shared with other programs, one of which may have made it non-blocking: a
//! read or write that would have to wait then waits here.

use std::io;
use std::os::fd::BorrowedFd;

use lastbyte_sys::readiness::{Interest, watch};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::fstat;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::stdio::{stderr, stdin, stdout};

pub(crate) fn stdin_is_a_terminal() -> bool {
    rustix::termios::isatty(stdin())
}

/// Whether standard output and error lead to the same place.
pub(crate) fn are_the_same_file() -> bool {
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
pub(crate) fn write_stdout(bytes: &[u8]) -> Result<usize, Errno> {
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

/// Waits until nobody reads standard output any more, if that can be known: a file and a terminal
/// have no reader. Must be called on a runtime.
pub(crate) async fn stdout_reader_gone() {
    let watched = fcntl_dupfd_cloexec(stdout(), 3).map_err(io::Error::from);
    match watched.and_then(|stdout| watch(stdout, Interest::ERROR)) {
        Ok(stdout) if stdout.ready(Interest::ERROR).await.is_ok() => {}
        Ok(_) | Err(_) => std::future::pending().await,
    }
}

/// Lets standard input go, so that whoever writes to it notices that nobody reads.
pub(crate) fn let_stdin_go() {
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
            Err(Errno::AGAIN) => match poll(&mut [PollFd::from_borrowed_fd(on, until)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            },
            answer => return answer,
        }
    }
}
