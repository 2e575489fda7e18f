//! What a view looks at.

use std::{io, ops::Range};

/// Bytes at offsets, some of which may be gone: a log up to a snapshot's length, or a slice.
pub trait Source {
    /// The end of what may be read.
    fn end(&self) -> u64;

    /// The dropped ranges below the end, in order and apart. A range may grow after the answer:
    /// [`Source::read_at`] has the last word.
    fn dropped(&self) -> &[Range<u64>];

    /// What is at `at`. A read may be short; it never reaches over a border between bytes that
    /// are there and bytes that are not.
    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<Read>;
}

/// What is at a place of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// So many bytes were filled in; none at the end only (or into an empty buffer).
    Bytes(usize),
    /// The bytes of this range, the place asked for in it, are gone.
    Dropped(Range<u64>),
    /// The bytes from here to this offset belong to what the source does not show.
    Other { until: u64 },
}

/// A slice as a source, with the ranges of it that count as dropped.
#[derive(Debug)]
pub struct Slice<'a> {
    bytes: &'a [u8],
    dropped: Vec<Range<u64>>,
}

impl<'a> Slice<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, dropped: Vec::new() }
    }

    /// Counts `range` as dropped; it lies within the slice and behind what is dropped already.
    pub fn without(mut self, range: Range<u64>) -> Self {
        self.dropped.push(range);
        self
    }
}

impl Source for Slice<'_> {
    fn end(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn dropped(&self) -> &[Range<u64>] {
        &self.dropped
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<Read> {
        if let Some(gone) = self.dropped.iter().find(|gone| gone.contains(&at)) {
            return Ok(Read::Dropped(gone.clone()));
        }
        let next_gone = self.dropped.iter().map(|gone| gone.start).find(|start| *start > at);
        let until = next_gone.unwrap_or(self.end());
        let available = &self.bytes[at.min(until) as usize..until as usize];
        let count = available.len().min(into.len());
        into[..count].copy_from_slice(&available[..count]);
        Ok(Read::Bytes(count))
    }
}
