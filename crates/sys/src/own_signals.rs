//! This program's own signals, as inherited from its parent.
//!
//! Masks and ignored signals survive exec, so a program may start with signals it cannot receive.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Signal;
use crate::raw::{check, syscall};

/// Every signal that can be ignored, as a bit set: bit n - 1 is signal n.
pub(crate) const ALL: u64 = !(1 << (libc::SIGKILL - 1) | 1 << (libc::SIGSTOP - 1));

/// The signals that this program may ignore.
static MAY_BE_IGNORED: AtomicU64 = AtomicU64::new(ALL);

/// Prepares a program that starts children; call it before the first thread starts. The program
/// then receives every signal, whatever mask it inherited. The kernel keeps the exit statuses of
/// its children. A child's exit interrupts only a thread that waits for it
/// ([`ChildExits`](crate::child_exits::ChildExits)). A write past the file size limit is an error
/// instead of a fatal signal.
///
/// After this call the program must not ignore any other signal: children get the default action
/// only for the signals that are ignored now.
pub fn prepare_for_children() {
    unblock_all();
    // SAFETY: SIGCHLD exists, and the default action runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    // SAFETY: SIGXFSZ exists, and ignoring it runs no code of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    block_sigchld();
    MAY_BE_IGNORED.store(ignored(), Ordering::Relaxed);
}

/// The signals that a child of this program may inherit as ignored.
pub(crate) fn may_be_ignored() -> u64 {
    MAY_BE_IGNORED.load(Ordering::Relaxed)
}

fn ignored() -> u64 {
    let is_one = |signal: &usize| is_ignored(*signal);
    let asked = || (1..=64).filter(is_one).fold(0, |set, signal| set | 1 << (signal - 1));
    listed_as_ignored().unwrap_or_else(asked)
}

/// All at once, where there is a `/proc`.
fn listed_as_ignored() -> Option<u64> {
    let mut text = [0; 4096];
    let length = File::open("/proc/self/status").ok()?.read(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text[..length]);
    let set = text.lines().find_map(|line| line.strip_prefix("SigIgn:"))?.trim();
    // A user in very many groups has a longer file, which may be cut here.
    if set.len() == 16 { u64::from_str_radix(set, 16).ok() } else { None }
}

/// Whether this program ignores the signal, as it may do from its start.
pub fn ignores(signal: Signal) -> bool {
    is_ignored(signal.number().unsigned_abs() as usize)
}

/// Asks the kernel directly, because libc hides two signals that it reserves.
fn is_ignored(signal: usize) -> bool {
    // The kernel's struct sigaction: handler, flags, restorer, mask.
    let mut action = [0u64; 4];
    let place = action.as_mut_ptr() as usize;
    // SAFETY: a null new action makes this a query; the old action is written to `action`, which
    // has its size.
    let answer = unsafe { syscall(libc::SYS_rt_sigaction, [signal, 0, place, size_of::<u64>()]) };
    answer == 0 && action[0] == libc::SIG_IGN as u64
}

/// Unblocks every signal for the calling thread and the threads it starts later.
pub fn unblock_all() {
    change_mask(libc::SIG_SETMASK, 0);
}

/// Blocks SIGCHLD for the calling thread and the threads it starts later.
pub fn block_sigchld() {
    change_mask(libc::SIG_BLOCK, SIGCHLD);
}

/// Leaves this program's signals to its other threads, except those that libc reserves.
pub(crate) fn block_all() {
    let reserved = (1 << (libc::SIGRTMIN() - 1)) - (1 << 31);
    change_mask(libc::SIG_SETMASK, !reserved);
}

/// As a bit set, like [`ALL`].
pub(crate) const SIGCHLD: u64 = 1 << (libc::SIGCHLD - 1);

/// Changes the calling thread's mask, even for the signals that libc reserves. Returns the mask as
/// it was.
pub(crate) fn change_mask(how: libc::c_int, mask: u64) -> u64 {
    let mut old = 0u64;
    let (new, place) = (ptr::from_ref(&mask) as usize, ptr::from_mut(&mut old) as usize);
    let how = how.unsigned_abs() as usize;
    // SAFETY: both masks are live and 8 bytes, the size the kernel uses.
    unsafe { syscall(libc::SYS_rt_sigprocmask, [how, new, place, size_of::<u64>()]) };
    old
}

/// Signals that wait to be read, instead of interrupting. For a program with one thread.
#[derive(Debug)]
pub struct SignalQueue {
    descriptor: OwnedFd,
}

impl SignalQueue {
    /// From now on these signals are queued. One that is ignored stays ignored, as `nohup` wants it.
    pub fn open(signals: &[Signal]) -> io::Result<Self> {
        let heard = signals.iter().filter(|signal| !ignores(**signal));
        let mask = heard.fold(0u64, |set, signal| set | 1 << (signal.number() - 1));
        change_mask(libc::SIG_BLOCK, mask);
        let flags = (libc::SFD_CLOEXEC | libc::SFD_NONBLOCK).unsigned_abs() as usize;
        let args = [usize::MAX, ptr::from_ref(&mask) as usize, size_of::<u64>(), flags];
        // SAFETY: the mask is live and has the size the kernel uses; -1 makes a new descriptor.
        let number = check(unsafe { syscall(libc::SYS_signalfd4, args) })?;
        // SAFETY: the kernel made this descriptor for us in the call above.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(number as i32) } })
    }

    /// The next signal, if one waits.
    pub fn next(&self) -> Option<Signal> {
        // struct signalfd_siginfo, which begins with the number.
        let mut info = [0u8; 128];
        let length = rustix::io::read(&self.descriptor, &mut info).ok()?;
        let number: [u8; 4] = info[..length].first_chunk().copied()?;
        Signal::from_number(i32::from_ne_bytes(number)).ok()
    }
}

impl AsFd for SignalQueue {
    /// Readable while a signal waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_ignored_signals_is_what_each_of_them_says() {
        // SAFETY: this signal exists, and ignoring it runs no code of ours.
        unsafe { libc::signal(libc::SIGURG, libc::SIG_IGN) };
        let listed = listed_as_ignored().expect("tests have a /proc");
        assert!(ignores(Signal::from_number(libc::SIGURG).unwrap()));
        for signal in 1..=64 {
            assert_eq!(listed >> (signal - 1) & 1 == 1, is_ignored(signal), "{signal}");
        }
    }
}
