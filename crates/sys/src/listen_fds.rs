//! Listening sockets passed in by the process that started this program: `sd_listen_fds(3)`.

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::sockopt::socket_acceptconn;

/// The first descriptor after the standard ones.
const FIRST: RawFd = 3;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes `count` listening sockets and marks them close-on-exec. Only the first call gets any.
///
/// Call this before the program opens a listening socket of its own.
pub fn take(count: u16) -> Result<Vec<OwnedFd>, Errno> {
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let numbers = FIRST..FIRST + RawFd::from(count);
    // Check all of them before owning one, because an owned descriptor is closed on failure.
    numbers.clone().try_for_each(check)?;
    // SAFETY: the descriptor must be open and owned by nobody else. It was just checked to be a
    // listening socket; this program has made none yet, and only this call takes the ones it was
    // started with.
    Ok(numbers.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect())
}

fn check(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: the number is not -1. It may not be open: then the kernel reports that. Nothing
    // closes a descriptor meanwhile that was open when the program started.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    if !socket_acceptconn(fd)? {
        return Err(Errno::INVAL);
    }
    fcntl_setfd(fd, FdFlags::CLOEXEC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_listening_socket_is_not_taken() {
        // Standard input is not a listening socket, however the tests were started.
        assert!(check(0).is_err());
        assert_eq!(check(RawFd::MAX), Err(Errno::BADF));
    }
}
