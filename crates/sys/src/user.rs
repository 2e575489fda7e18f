//! The user this program runs as.

use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;

/// The home directory that the user database names, if any.
pub fn home() -> Option<PathBuf> {
    let mut entry = MaybeUninit::<libc::passwd>::uninit();
    let mut text = vec![0; 16 * 1024];
    let mut found = ptr::null_mut();
    // SAFETY: getuid(2) takes nothing and cannot fail.
    let uid = unsafe { libc::getuid() };
    // SAFETY: all four places are live and writable, and the text buffer's true length is given.
    let error = unsafe {
        libc::getpwuid_r(uid, entry.as_mut_ptr(), text.as_mut_ptr(), text.len(), &raw mut found)
    };
    if error != 0 || found.is_null() {
        return None;
    }
    // SAFETY: a result that is not null means that the entry was filled in.
    let folder = unsafe { entry.assume_init() }.pw_dir;
    // SAFETY: the entry's strings are NUL-terminated and lie in `text`, which is still here.
    let folder = unsafe { CStr::from_ptr(folder) };
    Some(PathBuf::from(OsStr::from_bytes(folder.to_bytes())))
}

/// Whether this program is user 0.
pub fn is_user_0() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this program has this capability in effect, by its number.
pub fn effective_capability(number: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> number & 1 == 1)
}
