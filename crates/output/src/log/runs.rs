//! Which bytes of a range are of which stream, and when they came: made of its stamps.

use std::ops::Range;

use super::{Stamp, Stream};

/// Bytes of one stream that arrived one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub range: Range<u64>,
    pub stream: Stream,
}

/// The runs of a range, by stamps that may begin before it. Bytes of which no stamp speaks are left
/// out.
pub(super) fn runs(stamps: &[Stamp], range: &Range<u64>) -> Vec<Run> {
    let ends = stamps.iter().skip(1).map(|stamp| stamp.offset).chain([range.end]);
    let mut runs: Vec<Run> = Vec::new();
    for (stamp, end) in stamps.iter().zip(ends) {
        let part = stamp.offset.max(range.start)..end.min(range.end);
        match runs.last_mut() {
            _ if part.is_empty() => {}
            Some(last) if last.stream == stamp.stream => last.range.end = part.end,
            _ => runs.push(Run { range: part, stream: stamp.stream }),
        }
    }
    runs
}

/// The stamps of these runs: one where each begins, and one where the time changes within it.
/// `times` begin at offset 0 and have each offset once.
pub(super) fn stamps(runs: &[Run], times: &[Stamp]) -> Vec<Stamp> {
    let of_run = |run: &Run| {
        let within = times.partition_point(|time| time.offset <= run.range.start);
        let behind = times.partition_point(|time| time.offset < run.range.end);
        let stream = run.stream;
        let first = times[..within].last().map(|time| Stamp { offset: run.range.start, ..*time });
        let rest = times[within..behind].iter().copied();
        first.into_iter().chain(rest).map(move |time| Stamp { stream, ..time })
    };
    runs.iter().flat_map(of_run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn stamp(offset: u64, stream: Stream, at_ms: u64) -> Stamp {
        Stamp { offset, stream, at_ms }
    }

    const ALL: [Stamp; 5] = [
        stamp(0, Stream::Out, 1),
        stamp(4, Stream::Out, 2),
        stamp(6, Stream::Err, 2),
        stamp(6, Stream::Out, 3),
        stamp(9, Stream::Err, 3),
    ];

    #[test]
    fn a_run_goes_on_when_only_the_time_changes() {
        let out = Run { range: 2..9, stream: Stream::Out };
        let err = Run { range: 9..12, stream: Stream::Err };
        assert_eq!(runs(&ALL, &(2..12)), [out.clone(), err]);
        assert_eq!(runs(&ALL, &(2..9)), [out]);
        assert_eq!(runs(&ALL[3..], &(2..3)), []);
    }

    #[test]
    fn stamps_lie_where_the_stream_or_the_time_changes() {
        let runs =
            [Run { range: 2..5, stream: Stream::Err }, Run { range: 5..8, stream: Stream::Out }];
        let want = [stamp(2, Stream::Err, 1), stamp(4, Stream::Err, 2), stamp(5, Stream::Out, 2)];
        assert_eq!(stamps(&runs, &ALL[..2]), want);
    }
}
