//! Sockets that whoever started this program has opened for it: `sd_listen_fds(3)`.

use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::net::sockopt::socket_acceptconn;

/// The first descriptor behind the standard ones.
const FIRST: RawFd = 3;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes so many listening sockets, from now on closed in children. Only the first call gets any.
///
/// Must be called before this program listens anywhere itself.
pub fn take(count: u16) -> Result<Vec<OwnedFd>, Errno> {
    if TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let numbers = FIRST..FIRST + RawFd::from(count);
    // All of them are looked at before one is owned, and closed by a failure.
    numbers.clone().try_for_each(check)?;
    // SAFETY: the descriptor must be open and nobody else's. It was just seen to be a listening
    // socket; this program has made none yet, and no other call takes what it was started with.
    Ok(numbers.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }).collect())
}

fn check(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: the number is not -1. Whether it is open is what is asked: if it is not, the kernel
    // says so, and nothing closes it meanwhile that was open when the program started.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    match socket_acceptconn(fd)? {
        true => fcntl_setfd(fd, FdFlags::CLOEXEC),
        false => Err(Errno::INVAL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_listening_socket_is_not_taken() {
        // Standard input is none, whatever the tests were started with.
        assert!(check(0).is_err());
        assert_eq!(check(RawFd::MAX), Err(Errno::BADF));
    }
}
