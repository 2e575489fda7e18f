//! Which bytes of a log there are: the log's half of a snapshot.

use std::ops::Range;

/// How far the log goes, and what of it is gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extent {
    pub len: u64,
    pub dropped: Dropped,
}

impl Extent {
    /// The same of a log of which only so many bytes are left: those that are missing are dropped, and
    /// what there is besides is late output.
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

    /// Of any ranges in any order. Where they are more than there can be, those next to each other
    /// are joined, with the bytes between them: what is there may be called gone, never the other
    /// way round.
    pub fn covering(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let mut all: Vec<_> = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        all.sort_by_key(|range| range.start);
        all.dedup_by(|next, last| {
            let joined = next.start <= last.end;
            if joined {
                last.end = last.end.max(next.end);
            }
            joined
        });
        while all.len() > 3 {
            let gap = |index: &usize| all[*index].start - all[*index - 1].end;
            let Some(nearest) = (1..all.len()).min_by_key(gap) else { break };
            all[nearest - 1].end = all.remove(nearest).end;
        }
        let mut all = all.into_iter();
        Self::of(std::array::from_fn(|_| all.next().unwrap_or_default()))
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
    use proptest::prelude::*;

    #[test]
    fn neighbours_are_one_range_and_empty_ranges_none() {
        let dropped = Dropped::of([4..8, 8..8, 8..12]);
        assert_eq!(dropped.ranges(), std::slice::from_ref(&(4..12)));
        assert_eq!(dropped.bytes(), 8);
        assert!(Dropped::of([1..1, 2..2, 3..3]).is_empty());
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
        let dropped = Dropped::of([4..8, 10..20, 30..40]);
        assert_eq!(dropped.below(15).ranges(), [4..8, 10..15]);
        assert_eq!(dropped.after(8), Some(10..20));
        assert_eq!(dropped.after(19), Some(10..20));
        assert_eq!(dropped.after(40), None);
    }
}
