//! SIGCHLD for a program that reaps orphans: one thread receives it.
//!
//! The kernel delivers the signal to any thread that does not block it. If all other threads block
//! it (see [`own_signals::prepare_for_children`](crate::own_signals::prepare_for_children)), a
//! child that exits does not interrupt their work. If they do not block it, every signal is still
//! received.

use std::io;
use std::mem::zeroed;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};

use crate::own_signals::{SIGCHLD, change_mask};
use crate::raw::{number, syscall};

/// Notification of children that have exited.
#[derive(Debug, Clone, Copy)]
pub struct ChildExits {
    event: &'static OwnedFd,
}

/// The descriptor the handler writes to. Never closed, because the handler may run at any time.
static EVENT: OnceLock<OwnedFd> = OnceLock::new();

impl ChildExits {
    /// Installs this program's SIGCHLD handler.
    pub fn listen() -> io::Result<Self> {
        let fresh = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let event = EVENT.get_or_init(|| fresh);
        install()?;
        Ok(Self { event })
    }

    /// Waits until a child has exited since the last wait, or until the timeout. The calling thread
    /// receives SIGCHLD here, even if it blocks it elsewhere.
    pub fn wait(&self, at_most: Duration) {
        let mut poll =
            libc::pollfd { fd: self.event.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let seconds = i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX);
        let limit = libc::timespec { tv_sec: seconds, tv_nsec: at_most.subsec_nanos().into() };
        let mask = change_mask(libc::SIG_BLOCK, 0) & !SIGCHLD;
        let (poll, limit) = (ptr::from_mut(&mut poll) as usize, ptr::from_ref(&limit) as usize);
        let (mask, size) = (ptr::from_ref(&mask) as usize, size_of::<u64>());
        // SAFETY: one entry, a limit and a mask of the size the kernel uses, all live for the call.
        unsafe { syscall(libc::SYS_ppoll, [poll, 1, limit, mask, size]) };
        // Clear the counter if it was set: the caller is about to check for every exit so far.
        _ = read(self.event, &mut [0; 8]);
    }

    /// Ends a wait early.
    pub fn interrupt(&self) {
        // A full counter ends the wait as well.
        _ = write(self.event, &1u64.to_ne_bytes());
    }
}

fn install() -> io::Result<()> {
    // SAFETY: all-zero is a valid action: the default action with an empty mask.
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = on_sigchld as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART | libc::SA_NOCLDSTOP;
    // SAFETY: the handler makes one system call and nothing else; a null old action is allowed.
    match unsafe { libc::sigaction(libc::SIGCHLD, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn on_sigchld(_: libc::c_int) {
    let Some(event) = EVENT.get() else { return };
    let one = 1u64;
    let from = ptr::from_ref(&one) as usize;
    // SAFETY: this writes eight live bytes to a descriptor that is never closed, and leaves `errno`
    // alone.
    unsafe { syscall(libc::SYS_write, [number(event.as_fd()), from, 8]) };
}
