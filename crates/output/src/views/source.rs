//! What a view reads from.

use std::{io, ops::Range};

/// Bytes at offsets, some of which may be dropped: a log up to the length of a snapshot, or a slice.
pub trait Source {
    /// The offset up to which it may be read.
    fn end(&self) -> u64;

    /// The dropped ranges below the end, sorted and disjoint. More may be dropped later; only
    /// [`Source::read_at`] is up to date.
    fn dropped(&self) -> &[Range<u64>];

    /// Reads at offset `at`. A read may be short. It never crosses a border between bytes that are
    /// there and bytes that are not.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<Read>;
}

/// What a source has at an offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// This many bytes were read; 0 only at the end (or into an empty buffer).
    Bytes(usize),
    /// The bytes of this range, which contains the offset, are dropped.
    Dropped(Range<u64>),
    /// The bytes up to this offset belong to a stream that the source does not show.
    Other { until: u64 },
}
