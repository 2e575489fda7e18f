//! Stamps that the disk did not take, kept in memory for as long as this program runs.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::Stamp;

/// 1.5 MiB: the stamps of two hours of output without a pause. Bytes of older ones that are not on
/// disk either are told with the last one that is.
const MOST: usize = 64 * 1024;

/// Shared by the writer and the readers; empty, and locked by nobody, while the disk is well.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    /// Boxed: hardly any log has some.
    stamps: OnceLock<Box<Mutex<VecDeque<Stamp>>>>,
}

impl Unwritten {
    /// Adds one that is neither before the last nor earlier.
    pub(super) fn add(&self, stamp: Stamp) {
        let mut stamps = guarded(self.stamps.get_or_init(Box::default));
        if stamps.len() >= MOST {
            stamps.pop_front();
        }
        stamps.push_back(stamp);
    }

    /// The one that `range` begins with, which may lie before it, and those within.
    pub(super) fn within(&self, range: &Range<u64>) -> Vec<Stamp> {
        let Some(stamps) = self.stamps.get().map(|stamps| guarded(stamps)) else {
            return Vec::new();
        };
        let first = stamps.partition_point(|stamp| stamp.offset <= range.start).saturating_sub(1);
        let behind = stamps.range(first..).copied();
        behind.take_while(|stamp| stamp.offset < range.end).collect()
    }

    /// The first one that was made at this time or later.
    pub(super) fn made_since(&self, at_ms: u64) -> Option<Stamp> {
        let stamps = guarded(self.stamps.get()?);
        stamps.get(stamps.partition_point(|stamp| stamp.at_ms < at_ms)).copied()
    }
}

fn guarded(stamps: &Mutex<VecDeque<Stamp>>) -> MutexGuard<'_, VecDeque<Stamp>> {
    // Every change is complete in itself.
    stamps.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Stream;

    #[test]
    fn the_newest_stay_and_are_found_by_offset_and_by_time() {
        let unwritten = Unwritten::default();
        assert_eq!((unwritten.within(&(0..9)), unwritten.made_since(0)), (Vec::new(), None));
        let stamp = |number: u64| Stamp { offset: number * 2, stream: Stream::Out, at_ms: number };
        let last = MOST as u64;
        (0..=last).for_each(|number| unwritten.add(stamp(number)));
        assert_eq!(unwritten.within(&(21..25)), [stamp(10), stamp(11), stamp(12)]);
        assert_eq!(unwritten.within(&(last * 2 + 1..u64::MAX)), [stamp(last)]);
        assert_eq!(unwritten.within(&(0..2)), [], "the oldest had to go");
        assert_eq!(unwritten.made_since(0), Some(stamp(1)));
        assert_eq!(unwritten.made_since(last), Some(stamp(last)));
        assert_eq!(unwritten.made_since(last + 1), None);
    }
}
