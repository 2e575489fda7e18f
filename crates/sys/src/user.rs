//! The user this program runs as.

use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;

/// The home directory from the user database, if it has one.
pub fn home() -> Option<PathBuf> {
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut text = vec![0; 16 * 1024];
    let mut found = ptr::null_mut();
    // SAFETY: getuid(2) takes no argument and cannot fail.
    let uid = unsafe { libc::getuid() };
    // SAFETY: all four pointers are to live, writable memory, and the length of the text buffer is
    // correct.
    let error = unsafe {
        libc::getpwuid_r(uid, entry.as_mut_ptr(), text.as_mut_ptr(), text.len(), &raw mut found)
    };
    if error != 0 || found.is_null() {
        return None;
    }
    // SAFETY: a result that is not null means that the entry was filled in.
    let folder = unsafe { entry.assume_init() }.pw_dir;
    // SAFETY: the entry's strings are NUL-terminated and point into `text`, which is still alive.
    let folder = unsafe { CStr::from_ptr(folder) };
    Some(PathBuf::from(OsStr::from_bytes(folder.to_bytes())))
}

/// Whether this program runs as user 0.
pub fn is_user_0() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this program runs as this user.
pub fn is_own_user(uid: u32) -> bool {
    rustix::process::geteuid().as_raw() == uid
}
