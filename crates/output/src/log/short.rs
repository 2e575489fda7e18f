//! A whole log that is short: bytes and stamps, so few that they fit into a record of its ending.

use std::ops::Range;

use super::Stamp;

/// A log that is larger stays in its file.
pub(super) const MOST_BYTES: usize = 4096;
/// So does one with more stamps, which take more room than its bytes.
pub(super) const MOST_STAMPS: usize = 64;

/// All bytes of a log, with the stamps that its index has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShortLog {
    pub bytes: Vec<u8>,
    pub stamps: Vec<Stamp>,
}

impl ShortLog {
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Copies what is there from `at` on, and says how much.
    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> usize {
        let at = usize::try_from(at).unwrap_or(usize::MAX).min(self.bytes.len());
        let count = into.len().min(self.bytes.len() - at);
        into[..count].copy_from_slice(&self.bytes[at..at + count]);
        count
    }

    /// The stamp that `range` begins with, which may lie before it, and those within.
    pub(super) fn within(&self, range: &Range<u64>) -> Vec<Stamp> {
        let up_to_start = self.stamps.partition_point(|stamp| stamp.offset <= range.start);
        let behind = self.stamps[up_to_start.saturating_sub(1)..].iter().copied();
        behind.take_while(|stamp| stamp.offset < range.end).collect()
    }

    /// The first stamp that was made at this time or later.
    pub(super) fn made_since(&self, at_ms: u64) -> Option<Stamp> {
        self.stamps.iter().copied().find(|stamp| stamp.at_ms >= at_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Stream;

    #[test]
    fn it_reads_as_far_as_it_goes() {
        let stamp = |offset, at_ms| Stamp { offset, stream: Stream::Out, at_ms };
        let stamps = vec![stamp(0, 5), stamp(2, 7), stamp(4, 9)];
        let short = ShortLog { bytes: b"abcdef".to_vec(), stamps: stamps.clone() };
        let mut into = [0; 3];
        assert_eq!((short.read(1, &mut into), &into), (3, b"bcd"));
        assert_eq!((short.read(4, &mut into), &into[..2]), (2, &b"ef"[..]));
        assert_eq!((short.read(6, &mut into), short.read(7, &mut into)), (0, 0));
        assert_eq!(short.within(&(3..5)), stamps[1..]);
        assert_eq!(short.made_since(6), Some(stamps[1]));
    }
}
