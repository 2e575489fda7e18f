//! A descriptor table private to one thread, so that no other thread's child inherits what it
//! opens.

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags, dup2, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// What a spawner keeps open: its end of the program's socket and `/dev/null`.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) socket: OwnedFd,
    pub(super) null: OwnedFd,
}

impl Table {
    /// Gives the calling thread a private table that holds only `socket`, taken by number from the
    /// shared table, and `/dev/null` as the standard streams.
    pub(super) fn enter(socket: RawFd) -> Result<Self, Errno> {
        // SAFETY: the thread has just started and owns no descriptor, so none changes its meaning.
        unsafe { unshare_unsafe(UnshareFlags::FILES) }?;
        // SAFETY: the copied table has this descriptor, and the program keeps the original open
        // until this function returns.
        let socket = unsafe { BorrowedFd::borrow_raw(socket) };
        let first = FIRST_FREE;
        let socket = fcntl_dupfd_cloexec(socket, first)?;
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let null = fcntl_dupfd_cloexec(null, first)?;
        close_others(&[&socket, &null])?;
        for stream in 0..=2 {
            replace_standard_stream(stream, &null)?;
        }
        Ok(Self { socket, null })
    }
}

/// The first number above the standard streams.
const FIRST_FREE: RawFd = 3;

/// Closes everything in the copied table except these: a copy would keep a pipe or socket of the
/// program open without its knowledge.
fn close_others(keep: &[&OwnedFd]) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    let mut keep: Vec<_> = keep.iter().map(|fd| fd.as_raw_fd().unsigned_abs()).collect();
    keep.sort_unstable();
    let mut first = 3u32;
    for kept in keep.into_iter().chain([u32::MAX]) {
        if first < kept {
            close_range(first, kept - 1)?;
        }
        first = kept.saturating_add(1);
    }
    Ok(())
}

fn close_range(first: u32, last: u32) -> Result<(), Errno> {
    // SAFETY: the table is private to this thread, and nothing here owns a descriptor in the range.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } {
        0 => Ok(()),
        _ => Err(errno(std::io::Error::last_os_error())),
    }
}

fn replace_standard_stream(number: RawFd, null: &OwnedFd) -> Result<(), Errno> {
    use std::mem::ManuallyDrop;
    use std::os::fd::FromRawFd;
    // SAFETY: used as a number, not as an owner: in this private table nothing owns the standard
    // streams, and the wrapper is never dropped.
    let mut target = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
    dup2(null, &mut target)?;
    fcntl_setfd(&*target, FdFlags::empty())
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
