//! Stamps in order: which of them a range has, and the runs of streams they make.

use std::ops::Range;

use super::{Stamp, Stream};

/// Bytes of one stream that arrived one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub range: Range<u64>,
    pub stream: Stream,
}

/// The stamp that `range` begins with, which may lie before it, and those within.
pub(super) fn within(stamps: &[Stamp], range: &Range<u64>) -> Vec<Stamp> {
    let first = stamps.partition_point(|stamp| stamp.offset <= range.start).saturating_sub(1);
    let following = stamps[first..].iter().copied();
    following.take_while(|stamp| stamp.offset < range.end).collect()
}

/// As [`within`], with the first stamp where the range begins.
pub(super) fn clipped(stamps: &[Stamp], range: Range<u64>) -> Vec<Stamp> {
    let mut found = if range.is_empty() { Vec::new() } else { within(stamps, &range) };
    found.iter_mut().take(1).for_each(|first| first.offset = first.offset.max(range.start));
    found
}

/// The first stamp of this time or later.
pub(super) fn made_since(stamps: &[Stamp], at_ms: u64) -> Option<Stamp> {
    stamps.get(stamps.partition_point(|stamp| stamp.at_ms < at_ms)).copied()
}

/// The runs of the bytes from the first stamp up to `end`.
pub(super) fn runs(stamps: &[Stamp], end: u64) -> Vec<Run> {
    let ends = stamps.iter().skip(1).map(|stamp| stamp.offset).chain([end]);
    let mut runs: Vec<Run> = Vec::new();
    for (stamp, end) in stamps.iter().zip(ends) {
        match runs.last_mut().filter(|last| last.stream == stamp.stream) {
            Some(last) => last.range.end = end,
            None => runs.push(Run { range: stamp.offset..end, stream: stamp.stream }),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn stamp(offset: u64, stream: Stream, at_ms: u64) -> Stamp {
        Stamp { offset, stream, at_ms }
    }

    const ALL: [Stamp; 4] = [
        stamp(0, Stream::Out, 1),
        stamp(4, Stream::Out, 2),
        stamp(6, Stream::Out, 3),
        stamp(9, Stream::Err, 3),
    ];

    #[test]
    fn a_run_goes_on_when_only_the_time_changes() {
        let out = Run { range: 2..9, stream: Stream::Out };
        let err = Run { range: 9..12, stream: Stream::Err };
        assert_eq!(runs(&clipped(&ALL, 2..12), 12), [out.clone(), err]);
        assert_eq!(runs(&clipped(&ALL, 2..9), 9), [out]);
        assert_eq!(runs(&[], 9), []);
    }

    #[test]
    fn a_range_has_the_stamp_it_begins_with_and_those_within() {
        assert_eq!(within(&ALL, &(5..9)), ALL[1..3]);
        assert_eq!(clipped(&ALL, 5..9), [stamp(5, Stream::Out, 2), ALL[2]]);
        assert_eq!(clipped(&ALL, 5..5), []);
        assert_eq!(clipped(&ALL[2..], 2..7), [ALL[2]], "of what lies before nothing is known");
        assert_eq!((made_since(&ALL, 2), made_since(&ALL, 4)), (Some(ALL[1]), None));
    }
}
