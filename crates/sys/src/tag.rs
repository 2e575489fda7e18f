//! A number that every descendant of a leader inherits, in two limits that Linux does not enforce.
//!
//! Linux keeps `RLIMIT_LOCKS` and `RLIMIT_RSS` and inherits them across fork and exec, but has
//! enforced neither since 2.4, so they can carry a number. They survive everything that a daemon does
//! to detach itself (`setsid`, a second fork, an empty environment, closed streams). Anyone can read
//! them in `/proc/PID/limits`, even of a zombie.
//!
//! An ordinary user can lower a limit but not raise it. One limit grows with the number and the other
//! falls, so no other number can be reached by lowering them: a process can drop its tag, but cannot
//! take that of another tree.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::procfs::{read_if_visible, words};
use crate::registry::Header;

/// The number of one leader of this program, as its hard limits show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag {
    locks: u64,
    rss: u64,
}

/// How many bits of a number show that this program made it. The rest counts leaders.
const CHECK_BITS: u32 = 30;

/// The highest bit of each limit. The number is in the bits below.
#[derive(Debug, Clone, Copy)]
struct Bases {
    locks: u64,
    rss: u64,
}

impl Tag {
    /// A tag that no other leader of this program has. `None` if this program's own limits leave no
    /// room for another number.
    pub fn next() -> Option<Self> {
        let count = counter().fetch_add(1, Ordering::Relaxed);
        Bases::of_this_program()?.tag(count << CHECK_BITS | check(count))
    }

    /// For a note that a later worker reads.
    pub fn numbers(self) -> [u64; 2] {
        [self.locks, self.rss]
    }

    /// `None` for zeros.
    pub fn from_numbers([locks, rss]: [u64; 2]) -> Option<Self> {
        (locks != 0).then_some(Self { locks, rss })
    }

    /// The tag of this process, if this program made it. `None` if the process is gone.
    pub fn from_pid(pid: i32) -> io::Result<Option<Self>> {
        let limits = read_if_visible(pid, "limits")?;
        let bases = Bases::of_this_program();
        Ok(bases.and_then(|bases| bases.parse(&String::from_utf8_lossy(&limits))))
    }

    /// Which limits it sets to what, soft and hard in the kernel's layout.
    pub(crate) fn limits(self) -> [(usize, [u64; 2]); 2] {
        let Self { locks, rss } = self;
        [(libc::RLIMIT_LOCKS as usize, [locks; 2]), (libc::RLIMIT_RSS as usize, [rss; 2])]
    }
}

/// Whether leaders of this program get tags.
pub fn is_available() -> bool {
    Bases::of_this_program().is_some()
}

impl Bases {
    /// `None` if there can be no tags. A limit can only be lowered: each nested server has half as
    /// many numbers as the one around it.
    fn of_this_program() -> Option<Self> {
        static BASES: OnceLock<Option<Bases>> = OnceLock::new();
        let base = |which| {
            let own = getrlimit(which);
            let highest = own.maximum.unwrap_or(1 << 63);
            // Changes nothing. It fails on a system that does not keep this limit.
            setrlimit(which, own).ok()?;
            Some(1u64 << highest.checked_ilog2()?.checked_sub(1)?)
        };
        let find = || Some(Self { locks: base(Resource::Locks)?, rss: base(Resource::Rss)? });
        *BASES.get_or_init(find)
    }

    /// `None` for a number that is too large.
    fn tag(self, number: u64) -> Option<Tag> {
        let rss = self.rss.checked_sub(1)?.checked_sub(number)?;
        (number < self.locks).then_some(Tag { locks: self.locks + number, rss: self.rss + rss })
    }

    /// From lines like `Max file locks   SOFT   HARD   locks`.
    fn parse(self, limits: &str) -> Option<Tag> {
        let hard = |name| words(limits, name).nth(1)?.parse::<u64>().ok();
        let shown = Tag { locks: hard("Max file locks")?, rss: hard("Max resident set")? };
        let number = shown.locks.checked_sub(self.locks)?;
        let is_ours = number & ((1 << CHECK_BITS) - 1) == check(number >> CHECK_BITS);
        self.tag(number).filter(|tag| *tag == shown && is_ours)
    }
}

/// Where key and count of tags are if they outlive this program.
static KEPT: OnceLock<&'static Header> = OnceLock::new();

/// Goes on with the tags of the workers before this one. To be called before the first tag is made.
pub fn go_on(header: &'static Header) {
    _ = header.tags[0].compare_exchange(0, random(), Ordering::SeqCst, Ordering::SeqCst);
    _ = KEPT.set(header);
}

/// How many leaders were counted, those of earlier workers included, even if no tag was left for them.
pub fn count() -> u64 {
    counter().load(Ordering::Relaxed)
}

fn counter() -> &'static AtomicU64 {
    static OWN: AtomicU64 = AtomicU64::new(0);
    KEPT.get().map_or(&OWN, |header| &header.tags[1])
}

fn random() -> u64 {
    RandomState::new().hash_one(0) | 1
}

fn check(count: u64) -> u64 {
    static OWN: OnceLock<u64> = OnceLock::new();
    let own = || *OWN.get_or_init(random);
    let key = KEPT.get().map_or_else(own, |header| header.tags[0].load(Ordering::Relaxed));
    let mut hasher = DefaultHasher::new();
    (key, count).hash(&mut hasher);
    hasher.finish() & ((1 << CHECK_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASES: Bases = Bases { locks: 1 << 61, rss: 1 << 62 };

    /// The tag of the leader with this count.
    fn tag(count: u64) -> Tag {
        BASES.tag(count << CHECK_BITS | check(count)).expect("it is small enough")
    }

    fn parse(locks: u64, rss: u64) -> Option<Tag> {
        BASES.parse(&format!(
            "Max resident set          7                    {rss}      bytes\n\
             Max processes             1                    2          processes\n\
             Max file locks            7                    {locks}    locks\n"
        ))
    }

    #[test]
    fn a_tag_is_told_from_every_other_number() {
        assert_ne!(Tag::next(), Tag::next());
        let own @ Tag { locks, rss } = tag(5);
        assert_eq!(parse(locks, rss), Some(own));
        for change in [1, 2, 1 << CHECK_BITS] {
            // The same number in both, but one that this program did not make.
            assert_eq!(parse(locks + change, rss - change), None, "{change}");
            assert_eq!(parse(locks - change, rss + change), None, "{change}");
        }
    }

    #[test]
    fn a_process_cannot_take_the_tag_of_another_tree_by_lowering_its_limits() {
        let own = tag(5);
        for count in [0, 1, 4, 6, 1 << 20] {
            let other = tag(count);
            assert!(other.locks > own.locks || other.rss > own.rss, "one has to be raised");
            assert_eq!(parse(other.locks.min(own.locks), other.rss.min(own.rss)), None, "{count}");
            // Nor with fewer bits, in which every number is lower.
            assert_eq!(parse(other.locks >> 1, other.rss >> 1), None, "{count}");
        }
        assert_eq!([parse(0, 0), BASES.parse("")], [None, None]);
    }

    #[test]
    fn a_process_without_one_bears_none() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        assert_eq!((Tag::from_pid(own).unwrap(), Tag::from_pid(i32::MAX).unwrap()), (None, None));
    }
}
