//! Which bytes of a log there are: the log's part of a snapshot.

use std::ops::Range;

/// The length of the log, and what of it is gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extent {
    pub len: u64,
    pub dropped: Dropped,
}

impl Extent {
    /// The extent of this log if only its first `len` bytes are left: missing ones are dropped, and
    /// bytes past the old length are late output.
    pub fn left_in(&self, len: u64) -> Self {
        let missing = len.min(self.len)..self.len;
        let known = self.dropped.ranges().iter().cloned();
        Self { len: self.len.max(len), dropped: Dropped::covering(known.chain([missing])) }
    }
}

/// The ranges whose bytes are gone, in order and apart from each other.
///
/// There are never more than three: the middle of the output, the middle of late output, and
/// what a failing disk did not take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dropped {
    /// Does not allocate while it is empty, as it is for most logs.
    ranges: Vec<Range<u64>>,
}

impl Dropped {
    /// Takes any ranges in any order. If more than three are apart, the nearest are joined with the
    /// bytes between them: bytes that are there may be called gone, never the other way round.
    pub fn covering(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut ranges: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        ranges.sort_by_key(|range| range.start);
        ranges.dedup_by(|next, last| {
            let joined = next.start <= last.end;
            if joined {
                last.end = last.end.max(next.end);
            }
            joined
        });
        while ranges.len() > 3 {
            let gap = |index: &usize| ranges[*index].start - ranges[*index - 1].end;
            let Some(nearest) = (1..ranges.len()).min_by_key(gap) else { break };
            ranges[nearest - 1].end = ranges.remove(nearest).end;
        }
        Self { ranges }
    }

    pub fn ranges(&self) -> &[Range<u64>] {
        &self.ranges
    }

    /// How many bytes are gone in all.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.end - range.start).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The first dropped range that ends after `at`.
    pub fn after(&self, at: u64) -> Option<Range<u64>> {
        self.ranges.iter().find(|range| range.end > at).cloned()
    }

    /// The part of these ranges below `len`.
    pub fn below(&self, len: u64) -> Self {
        let cut = |range: &Range<u64>| range.start.min(len)..range.end.min(len);
        Self::covering(self.ranges.iter().map(cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_are_one_range_and_empty_ranges_none() {
        let dropped = Dropped::covering([4..8, 8..8, 8..12]);
        assert_eq!(dropped.ranges(), std::slice::from_ref(&(4..12)));
        assert_eq!(dropped.bytes(), 8);
        assert!(Dropped::covering([1..1, 2..2, 3..3]).is_empty());
    }

    proptest! {
        #[test]
        fn whatever_was_gone_is_still_called_so(
            given in prop::collection::vec((0u64..1000, 0u64..50), 0..12),
        ) {
            let given: Vec<_> = given.into_iter().map(|(start, len)| start..start + len).collect();
            let dropped = Dropped::covering(given.clone());
            let is_gone = |at: u64| dropped.ranges().iter().any(|range| range.contains(&at));
            let was_gone = |at: u64| given.iter().any(|range| range.contains(&at));
            prop_assert!((0..1100).all(|at| is_gone(at) || !was_gone(at)));
            let apart = dropped.ranges().windows(2).all(|pair| pair[0].end < pair[1].start);
            prop_assert!(apart, "{:?}", dropped);
            let borders = (1..1100).filter(|at| was_gone(*at) && !was_gone(*at - 1)).count();
            if borders + usize::from(was_gone(0)) <= 3 {
                prop_assert!((0..1100).all(|at| is_gone(at) == was_gone(at)), "{:?}", dropped);
            }
        }
    }

    #[test]
    fn what_lies_past_a_length_is_cut_off() {
        let dropped = Dropped::covering([4..8, 10..20, 30..40]);
        assert_eq!(dropped.below(15).ranges(), [4..8, 10..15]);
        assert_eq!(dropped.after(8), Some(10..20));
        assert_eq!(dropped.after(19), Some(10..20));
        assert_eq!(dropped.after(40), None);
    }
}
