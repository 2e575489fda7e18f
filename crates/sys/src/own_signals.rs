//! This program's own signals, as whoever started it left them.
//!
//! Masks and ignored signals survive exec, so a program may begin with signals it cannot get.

use std::mem::MaybeUninit;
use std::ptr;

/// Lets the calling thread, and those it starts from now on, get every signal.
pub fn unblock_all() {
    let mut none = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the pointer is to a live, writable set.
    unsafe { libc::sigemptyset(none.as_mut_ptr()) };
    // SAFETY: the set was filled in above; a null old set is allowed.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut()) };
}

/// Makes the kernel keep the exit statuses of children, which it does not do for a program that
/// was started with SIGCHLD ignored.
pub fn keep_exit_statuses() {
    // SAFETY: SIGCHLD exists, and the default action runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}

/// Makes a write past this program's file size limit an error instead of a deadly signal.
pub fn survive_file_size_limit() {
    // SAFETY: SIGXFSZ exists, and ignoring it runs no code of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
