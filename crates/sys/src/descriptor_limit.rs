//! Descriptor limits for this program and for its children.
//!
//! A server needs more than the usual soft limit, which is low for the sake of programs that use
//! `select`. Its children may be such programs, so they get the limit this program was started
//! with.

use std::os::fd::AsFd;
use std::sync::OnceLock;

use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Soft and hard limit, in the kernel's layout.
pub(crate) type SoftAndHard = [u64; 2];

/// The limits this program was started with, once it has raised them.
static BEFORE: OnceLock<SoftAndHard> = OnceLock::new();

/// Raises this program's soft limit to the hard limit. Its children keep the earlier limit.
pub fn raise() {
    let limit = getrlimit(Resource::Nofile);
    let number = |limit: Option<u64>| limit.unwrap_or(u64::MAX);
    BEFORE.get_or_init(|| [number(limit.current), number(limit.maximum)]);
    // If the kernel refuses, the limit stays as it was.
    _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Makes the table of descriptors large enough for this many, as far as the limit permits. For a
/// process that shares its table with nobody yet. Later, whenever the table is full, the kernel makes
/// it twice as large and waits until no thread can be looking at the old one: 16 to 32 ms were seen.
pub fn reserve(count: usize, any: impl AsFd) {
    let count = own().map_or(count, |limit| count.min(usize::try_from(limit).unwrap_or(count)));
    let highest = i32::try_from(count.saturating_sub(1)).unwrap_or(i32::MAX);
    // The table stays as large as this copy has made it. Without one, it grows when it must.
    _ = fcntl_dupfd_cloexec(any, highest);
}

/// The soft limit of this program; `None` if unlimited.
pub fn own() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// The soft limit that [`raise`] gives this program; `None` if unlimited.
pub fn raised() -> Option<u64> {
    getrlimit(Resource::Nofile).maximum
}

/// The limits for a child; `None` if it inherits this program's.
pub(crate) fn for_children() -> Option<SoftAndHard> {
    BEFORE.get().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    use crate::procfs::words;

    #[test]
    fn a_table_is_as_large_as_was_reserved_as_far_as_the_limit_permits() {
        let size = || {
            let status = fs::read_to_string("/proc/self/status").unwrap();
            words(&status, "FDSize:").next().unwrap().parse::<u64>().unwrap()
        };
        let limit = own().unwrap_or(u64::MAX);
        assert!(size() < 4096.min(limit));
        reserve(4096, std::io::stdin());
        assert!(size() >= 4096.min(limit), "{} with a limit of {limit}", size());
    }
}
