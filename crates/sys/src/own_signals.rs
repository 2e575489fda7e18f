//! This program's own signals, as whoever started it left them.
//!
//! Masks and ignored signals survive exec, so a program may begin with signals it cannot get.

use std::mem::MaybeUninit;
use std::ptr;

/// For a program that starts children, before its first thread: it gets every signal, whatever it
/// was started with; the kernel keeps the exit statuses of its children; and their ends interrupt
/// nobody who does not ask for them ([`ChildEnds`](crate::child_ends::ChildEnds)).
pub fn get_ready_for_children() {
    unblock_all();
    // SAFETY: SIGCHLD exists, and the default action runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    leave_ends_of_children_alone();
}

/// Lets the calling thread, and those it starts from now on, get every signal.
pub fn unblock_all() {
    set_mask(libc::SIG_SETMASK, None);
}

/// The calling thread, and those it starts from now on, do not get SIGCHLD.
pub fn leave_ends_of_children_alone() {
    set_mask(libc::SIG_BLOCK, Some(libc::SIGCHLD));
}

fn set_mask(how: libc::c_int, signal: Option<libc::c_int>) {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the pointer is to a live, writable set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    if let Some(signal) = signal {
        // SAFETY: the set was made above, and the signal exists.
        unsafe { libc::sigaddset(set.as_mut_ptr(), signal) };
    }
    // SAFETY: the set was filled in above; a null old set is allowed.
    unsafe { libc::pthread_sigmask(how, set.as_ptr(), ptr::null_mut()) };
}

/// Makes a write past this program's file size limit an error instead of a deadly signal.
pub fn survive_file_size_limit() {
    // SAFETY: SIGXFSZ exists, and ignoring it runs no code of ours.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
