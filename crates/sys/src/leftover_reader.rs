//! The leftover reader: a process that outlives this program, reads what arrives on some descriptors
//! and discards it, until nothing can write to any of them.
//!
//! It keeps programs alive that write to a pipe or a terminal after its reader has ended: without it
//! they would be killed by SIGPIPE, or get EIO. It has nothing else open, no terminal, and takes no
//! signal but SIGKILL: it must be there for the last line that a program writes when it is stopped.
//!
//! Like the stand-in it uses neither the heap nor locks: other threads may have them when it is cloned.

use std::ffi::c_void;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::io::Errno;

use crate::own_signals::change_mask;
use crate::pipe::retry;
use crate::raw::{Entry, check, clone, syscall};
use crate::stand_in::{close_range, end};

/// The most descriptors it can read.
pub const MOST: usize = 2;

/// Clones a reader of these, which it has open from now on. At most [`MOST`]; without any, nothing
/// is cloned.
pub fn leave(sources: &[BorrowedFd<'_>]) -> io::Result<()> {
    if sources.len() > MOST {
        return Err(Errno::TOOBIG.into());
    }
    if sources.is_empty() {
        return Ok(());
    }
    let mut polled = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; MOST];
    for (place, source) in polled.iter_mut().zip(sources) {
        place.fd = source.as_raw_fd();
    }
    polled.sort_unstable_by_key(|place| place.fd);
    // No signal at its exit: it is no child that this program waits for.
    let entry: Entry = (enter, ptr::from_mut(&mut polled).cast());
    let mask = change_mask(libc::SIG_SETMASK, u64::MAX);
    // SAFETY: without CLONE_VM the child has a copy of all memory, so this thread's stack and what is
    // on it are its own to go on with.
    let answer = check(unsafe { clone(libc::SYS_clone, [0; 3], 0, entry) });
    change_mask(libc::SIG_SETMASK, mask);
    Ok(answer.map(drop)?)
}

type Polled = [libc::pollfd; MOST];

/// Its whole life.
///
/// # Safety
/// Must run in a process of its own; `polled` points to a [`Polled`] that nothing else uses, sorted
/// by descriptor.
unsafe extern "C" fn enter(polled: *mut c_void) -> ! {
    // SAFETY: the caller's contract.
    let polled = unsafe { &mut *polled.cast::<Polled>() };
    // Neither a terminal nor a folder is kept busy. Neither call can fail here.
    _ = rustix::process::setsid();
    _ = rustix::process::chdir(c"/");
    close_others(polled);
    // Last, so that a process with this name is ready.
    _ = rustix::thread::set_name(c"lastbyte-reader");
    let mut bytes = [0; 16 << 10];
    while polled.iter().any(|place| place.fd >= 0) {
        let args = [polled.as_mut_ptr() as usize, MOST];
        // SAFETY: the array is live, writable and of this length; there is neither a timeout nor a mask.
        match retry(|| check(unsafe { syscall(libc::SYS_ppoll, args) })) {
            Ok(_) => polled.iter_mut().for_each(|place| discard_ready(place, &mut bytes)),
            Err(_) => break,
        }
    }
    end()
}

fn close_others(keep: &Polled) {
    let mut first = 0;
    for kept in keep.iter().filter_map(|place| u32::try_from(place.fd).ok()) {
        if first < kept {
            close_range(first, kept - 1);
        }
        first = kept + 1;
    }
    close_range(first, u32::MAX);
}

/// Discards what is ready, and closes a descriptor that is at its end: for a terminal that is EIO.
fn discard_ready(place: &mut libc::pollfd, bytes: &mut [u8]) {
    if place.fd < 0 || place.revents == 0 {
        return;
    }
    let source = place.fd.unsigned_abs();
    let args = [source as usize, bytes.as_mut_ptr() as usize, bytes.len()];
    // SAFETY: the buffer is live, writable and of this size.
    match retry(|| check(unsafe { syscall(libc::SYS_read, args) })) {
        Ok(1..) | Err(Errno::AGAIN) => {}
        Ok(0) | Err(_) => {
            close_range(source, source);
            place.fd = -1;
        }
    }
}
