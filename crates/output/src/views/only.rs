//! One stream of a log that holds two.
//!
//! Offsets stay offsets of the log: the bytes of the other stream are skipped, not renumbered. So a
//! range found in one stream can be fetched from the whole log, nothing has to count the bytes of a
//! stream, and the views need not know about streams.

use std::{fmt, io, ops::Range};

use super::{Read, Source};

/// A source that shows only the wanted bytes of another.
pub struct Only<'a, F> {
    source: &'a dyn Source,
    run_at: F,
}

/// Which stream the bytes at an offset belong to, and up to which offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    Wanted { until: u64 },
    Other { until: u64 },
}

impl<'a, F: Fn(u64) -> Run> Only<'a, F> {
    /// `run_at` is called only for offsets below the end of the source that are not dropped.
    pub fn new(source: &'a dyn Source, run_at: F) -> Self {
        Self { source, run_at }
    }
}

impl<F: Fn(u64) -> Run> Source for Only<'_, F> {
    fn end(&self) -> u64 {
        self.source.end()
    }

    fn dropped(&self) -> &[Range<u64>] {
        self.source.dropped()
    }

    /// Reports a dropped range for either stream, because who wrote it is often not known.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<Read> {
        let gone = self.dropped().iter().find(|gone| gone.end > at);
        if at >= self.end() || gone.is_some_and(|gone| gone.start <= at) {
            return self.source.read_at(at, into);
        }
        match (self.run_at)(at) {
            Run::Wanted { until } => {
                let run = usize::try_from(until.saturating_sub(at)).unwrap_or(usize::MAX).max(1);
                let size = into.len().min(run);
                self.source.read_at(at, &mut into[..size])
            }
            Run::Other { until } => {
                let until = gone.map_or(until, |gone| until.min(gone.start));
                Ok(Read::Other { until: until.max(at + 1) })
            }
        }
    }
}

impl<F> fmt::Debug for Only<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Only").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Slice, *};

    #[test]
    fn an_offset_is_wanted_or_other_or_dropped() {
        let slice = Slice::new(b"ooeeeeoo").without(4..5);
        let only = Only::new(&slice, |at| match at {
            0..2 => Run::Wanted { until: 2 },
            2..6 => Run::Other { until: 6 },
            _ => Run::Wanted { until: u64::MAX },
        });
        let mut buffer = [0; 8];
        let mut read = |at| only.read_at(at, &mut buffer).unwrap();
        assert_eq!(read(0), Read::Bytes(2));
        assert_eq!(read(2), Read::Other { until: 4 });
        assert_eq!(read(4), Read::Dropped(4..5));
        assert_eq!(read(5), Read::Other { until: 6 });
        assert_eq!(read(6), Read::Bytes(2));
        assert_eq!(read(8), Read::Bytes(0));
    }
}
