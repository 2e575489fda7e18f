//! A descriptor table private to one thread, so that no other thread's child inherits what it
//! opens.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::raw::{check, number, syscall};

/// Gives the calling thread a private table that holds only `socket`, taken by number from the
/// shared table, and `/dev/null`, also as the standard streams. Returns these two.
pub(super) fn enter_table(socket: RawFd) -> Result<(OwnedFd, OwnedFd), Errno> {
    // SAFETY: the thread has just started and owns no descriptor, so none changes its meaning.
    unsafe { unshare_unsafe(UnshareFlags::FILES) }?;
    // SAFETY: the copied table has this descriptor, and the program keeps the original open
    // until this function returns.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    let socket = fcntl_dupfd_cloexec(socket, FIRST_FREE)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let null = fcntl_dupfd_cloexec(null, FIRST_FREE)?;
    close_others(&[&socket, &null])?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&null)?;
    Ok((socket, null))
}

/// The first number above the standard streams.
const FIRST_FREE: RawFd = 3;

/// Closes everything in the copied table except these: a copy would keep a pipe or socket of the
/// program open without its knowledge.
fn close_others(keep: &[&OwnedFd]) -> Result<(), Errno> {
    let mut keep: Vec<_> = keep.iter().map(|fd| number(fd.as_fd())).collect();
    keep.sort_unstable();
    let mut first = FIRST_FREE as usize;
    for kept in keep.into_iter().chain([u32::MAX as usize]) {
        if first < kept {
            // SAFETY: the table is private to this thread, and nothing here owns a descriptor in
            // the range.
            check(unsafe { syscall(libc::SYS_close_range, [first, kept - 1, 0]) })?;
        }
        first = kept + 1;
    }
    Ok(())
}
