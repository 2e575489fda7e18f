//! A number that every descendant of a leader inherits: its limit of file locks.
//!
//! Linux keeps `RLIMIT_LOCKS` and inherits it across fork and exec, but has not enforced it since
//! 2.4.25, so it can carry a number. It survives everything that a daemon does to detach itself
//! (`setsid`, a second fork, an empty environment, closed streams). An ordinary user cannot raise
//! it. Anyone can read it in `/proc/PID/limits`, even of a zombie.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, getrlimit};

use crate::procfs::{read_if_visible, words};

/// The number of one leader of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag(u64);

/// How many bits of a tag show that this program made it. The rest counts leaders.
const CHECK_BITS: u32 = 30;

impl Tag {
    /// A tag that no other leader of this program has. `None` if this program's own limit leaves no
    /// room for another number.
    pub fn next() -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // A limit can only be lowered: each nested server has half as many numbers as the one
        // around it.
        let own_limit = getrlimit(Resource::Locks).maximum.unwrap_or(1 << 63);
        let base = 1u64 << own_limit.checked_ilog2()?.checked_sub(1)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let tag = number << CHECK_BITS | check(number);
        (tag < base).then_some(Self(base | tag))
    }

    /// The tag of this process, if this program made it. `None` if the process is gone.
    pub fn from_pid(pid: i32) -> io::Result<Option<Self>> {
        let limits = read_if_visible(pid, "limits")?;
        Ok(parse(&String::from_utf8_lossy(&limits)).filter(|limit| is_ours(*limit)).map(Self))
    }

    /// Soft and hard limit, in the kernel's layout.
    pub(crate) fn limits(self) -> [u64; 2] {
        [self.0; 2]
    }
}

/// Whether the check bits of a limit are the ones this program would generate.
fn is_ours(limit: u64) -> bool {
    let Some(top) = limit.checked_ilog2() else { return false };
    let tag = limit ^ 1 << top;
    tag & ((1 << CHECK_BITS) - 1) == check(tag >> CHECK_BITS)
}

fn check(number: u64) -> u64 {
    static KEY: OnceLock<RandomState> = OnceLock::new();
    KEY.get_or_init(RandomState::new).hash_one(number) & ((1 << CHECK_BITS) - 1)
}

/// Parses the hard limit, which only root can raise, from `Max file locks   SOFT   HARD   locks`.
fn parse(limits: &str) -> Option<u64> {
    words(limits, "Max file locks").nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_told_from_every_other_number() {
        let tag = Tag::next().expect("there is room below this program's own limit");
        assert_ne!(Tag::next(), Some(tag));
        assert!(is_ours(tag.0));
        let others = [0, 1, u64::MAX, tag.0 - 1, tag.0 + 1, tag.0 / 2, 1 << 62];
        assert_eq!(others.map(is_ours), [false; 7]);
    }

    #[test]
    fn the_hard_limit_is_read() {
        let line = "Max processes 1 2 processes\nMax file locks            7       9       locks\n";
        assert_eq!(parse(line), Some(9));
        assert_eq!(parse("Max file locks            unlimited   unlimited   locks\n"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn a_process_without_one_bears_none() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert_eq!((Tag::from_pid(own).unwrap(), Tag::from_pid(i32::MAX).unwrap()), (None, None));
    }
}
