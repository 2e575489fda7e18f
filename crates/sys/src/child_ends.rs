//! SIGCHLD, for a program that looks after orphans: one thread hears it.
//!
//! The kernel gives it to any thread that does not block it, so a program whose other threads do
//! (see [`own_signals::get_ready_for_children`](crate::own_signals::get_ready_for_children)) is not
//! interrupted in its work by each child that ends. Where they do not, all of it is heard just the
//! same.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};

use crate::raw::syscall;

/// The news of ended children.
#[derive(Debug, Clone, Copy)]
pub struct ChildEnds {
    news: &'static OwnedFd,
}

/// Where the handler writes to; never closed, since a handler may run at any time.
static NEWS: OnceLock<OwnedFd> = OnceLock::new();

impl ChildEnds {
    /// From now on this program has a handler for SIGCHLD.
    pub fn listen() -> io::Result<Self> {
        let fresh = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let news = NEWS.get_or_init(|| fresh);
        install()?;
        Ok(Self { news })
    }

    /// Waits until a child has ended since the last wait, or the time is over. Here the calling
    /// thread gets SIGCHLD, whether or not it does elsewhere.
    pub fn wait(&self, at_most: Duration) {
        let mut poll = libc::pollfd { fd: self.news.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let seconds = i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX);
        let limit = libc::timespec { tv_sec: seconds, tv_nsec: at_most.subsec_nanos().into() };
        let mask = own_mask_but(libc::SIGCHLD);
        // SAFETY: one entry, a limit and a filled-in set, all live for the call.
        unsafe { libc::ppoll(&raw mut poll, 1, &raw const limit, mask.as_ptr()) };
        // Whether or not there was any: what was heard so far is answered by the caller's look.
        _ = read(self.news, &mut [0; 8]);
    }

    /// Ends a wait.
    pub fn interrupt(&self) {
        // A counter that is full ends it as well.
        _ = write(self.news, &1u64.to_ne_bytes());
    }
}

/// What the calling thread blocks, without this signal.
fn own_mask_but(signal: libc::c_int) -> MaybeUninit<libc::sigset_t> {
    let mut mask = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: nothing is set, and the pointer is to a live, writable set.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, ptr::null(), mask.as_mut_ptr()) };
    // SAFETY: the set was filled in above, and the signal exists.
    unsafe { libc::sigdelset(mask.as_mut_ptr(), signal) };
    mask
}

fn install() -> io::Result<()> {
    // SAFETY: all zero is a valid action: the default one, with an empty mask.
    let mut action: libc::sigaction = unsafe { zeroed() };
    action.sa_sigaction = hear as extern "C" fn(libc::c_int) as usize;
    action.sa_flags = libc::SA_RESTART | libc::SA_NOCLDSTOP;
    // SAFETY: the handler does nothing but one system call; a null old action is allowed.
    match unsafe { libc::sigaction(libc::SIGCHLD, &raw const action, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

extern "C" fn hear(_: libc::c_int) {
    let Some(news) = NEWS.get() else { return };
    let one = 1u64;
    let from = ptr::from_ref(&one) as usize;
    // SAFETY: eight live bytes to a descriptor that is never closed; `errno` is left alone.
    unsafe { syscall(libc::SYS_write, [news.as_raw_fd().unsigned_abs() as usize, from, 8]) };
}
