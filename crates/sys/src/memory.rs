//! Memory: whether an allocation would succeed, and returning freed pages to the kernel.

use std::ptr::null_mut;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Whether the kernel would grant this much memory now, as far as address space limits tell
/// (`ulimit -v`, strict overcommit). A cgroup over its memory limit gets no such warning: its
/// processes are killed.
pub fn is_available(bytes: usize) -> bool {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses an unmapped address.
    let mapped = unsafe { mmap_anonymous(null_mut(), bytes, access, MapFlags::PRIVATE) };
    let Ok(place) = mapped else { return false };
    // SAFETY: this is the whole mapping made above, and nothing else refers to it.
    let unmapped = unsafe { munmap(place, bytes) };
    unmapped.is_ok()
}

/// Returns free pages to the kernel. This takes a few milliseconds per hundred megabytes, during
/// which threads that allocate wait. Does nothing if the allocator does not support it.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim(3) may be called by any thread at any time, and touches no memory in use.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use crate::OwnProgram;

    #[test]
    fn more_than_any_machine_has_is_not_there() {
        assert!(super::is_available(1 << 20));
        assert!(!super::is_available(1 << 60));
    }

    #[test]
    fn pages_between_others_that_are_in_use_are_given_back() {
        let resident = || OwnProgram::read().unwrap().resident_bytes;
        let mut blocks: Vec<Vec<u8>> = (0..64 << 10).map(|_| vec![1; 1024]).collect();
        // The last block keeps the allocator from returning the end of the heap.
        let last = blocks.pop();
        let full = resident();
        drop(blocks);
        super::trim();
        assert!(resident() + (48 << 20) < full, "{} after {full}", resident());
        drop(last);
    }
}
