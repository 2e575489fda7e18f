//! A source for tests.

use std::{io, ops::Range};

use super::{Read, Source};

/// A slice as a source; some of its ranges may count as dropped.
#[derive(Debug)]
pub(super) struct Slice<'a> {
    bytes: &'a [u8],
    dropped: Vec<Range<u64>>,
}

impl<'a> Slice<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, dropped: Vec::new() }
    }

    /// Marks `range` as dropped. It must lie in the slice, after the ranges already dropped.
    pub(super) fn without(mut self, range: Range<u64>) -> Self {
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
