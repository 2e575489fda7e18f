//! Which bytes of a log there are: the log's half of a snapshot.

use std::ops::Range;

/// How far the log goes, and what of it is gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extent {
    pub len: u64,
    pub dropped: Dropped,
}

/// The ranges whose bytes are gone, in order and apart from each other.
///
/// There are never more than three: the middle of the output, the middle of late output, and
/// what a failing disk did not take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dropped {
    ranges: [Range<u64>; 3],
    count: usize,
}

impl Dropped {
    /// Of these ranges, in order; empty ones are left out and neighbours joined.
    pub(crate) fn of(ranges: [Range<u64>; 3]) -> Self {
        let mut dropped = Self::default();
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            match dropped.count.checked_sub(1) {
                Some(last) if dropped.ranges[last].end >= range.start => {
                    dropped.ranges[last].end = range.end.max(dropped.ranges[last].end);
                }
                _ => {
                    dropped.ranges[dropped.count] = range;
                    dropped.count += 1;
                }
            }
        }
        dropped
    }

    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges[..self.count]
    }

    /// How many bytes are gone in all.
    pub fn bytes(&self) -> u64 {
        self.ranges().iter().map(|range| range.end - range.start).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The first dropped range that ends after `at`.
    pub fn after(&self, at: u64) -> Option<Range<u64>> {
        self.ranges().iter().find(|range| range.end > at).cloned()
    }

    /// The part of these ranges below `len`.
    pub fn below(&self, len: u64) -> Self {
        let cut = |range: &Range<u64>| range.start.min(len)..range.end.min(len);
        Self::of([cut(&self.ranges[0]), cut(&self.ranges[1]), cut(&self.ranges[2])])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_range_and_empty_ranges_none() {
        let dropped = Dropped::of([4..8, 8..8, 8..12]);
        assert_eq!(dropped.ranges(), std::slice::from_ref(&(4..12)));
        assert_eq!(dropped.bytes(), 8);
        assert!(Dropped::of([1..1, 2..2, 3..3]).is_empty());
    }

    #[test]
    fn what_lies_past_a_length_is_cut_off() {
        let dropped = Dropped::of([4..8, 10..20, 30..40]);
        assert_eq!(dropped.below(15).ranges(), [4..8, 10..15]);
        assert_eq!(dropped.after(8), Some(10..20));
        assert_eq!(dropped.after(19), Some(10..20));
        assert_eq!(dropped.after(40), None);
    }
}
