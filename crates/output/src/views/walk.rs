//! Forward through a source, a chunk at a time.

use std::{io, ops::Range};

use super::Source;
use super::source::Read;

/// How much is read at once.
pub(super) const CHUNK: usize = 64 * 1024;

/// Bytes and where they lie.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    pub at: u64,
    pub bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Takes the first `count` bytes off.
    pub(super) fn take(&mut self, count: usize) -> Self {
        let (taken, rest) = self.bytes.split_at(count);
        let taken = Self { at: self.at, bytes: taken };
        *self = Chunk { at: self.at + count as u64, bytes: rest };
        taken
    }

    /// Takes the bytes up to the next newline and with it off, or all if there is none.
    pub(super) fn take_line(&mut self) -> Self {
        let newline = self.bytes.iter().position(|byte| *byte == b'\n');
        self.take(newline.map_or(self.bytes.len(), |at| at + 1))
    }
}

/// What comes next in a source.
#[derive(Debug)]
pub(super) enum Step<'a> {
    Bytes(Chunk<'a>),
    Dropped(Range<u64>),
}

/// A walk through a range of a source; memory is one chunk.
pub(super) struct Walk<'s> {
    source: &'s dyn Source,
    at: u64,
    end: u64,
    buffer: Vec<u8>,
}

impl<'s> Walk<'s> {
    pub(super) fn new(source: &'s dyn Source, range: Range<u64>) -> Self {
        let end = range.end.min(source.end());
        let room = end.saturating_sub(range.start).min(CHUNK as u64) as usize;
        Self { source, at: range.start, end, buffer: vec![0; room] }
    }

    /// How far the walk has got.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Step<'_>>> {
        self.next_up_to(CHUNK)
    }

    /// The next step, of no more than `most` bytes.
    pub(super) fn next_up_to(&mut self, most: usize) -> io::Result<Option<Step<'_>>> {
        while self.at < self.end {
            let at = self.at;
            let room = (self.end - at).min(most.min(CHUNK) as u64) as usize;
            match self.source.read_at(at, &mut self.buffer[..room])? {
                Read::Bytes(0) => break,
                Read::Bytes(count) => {
                    self.at += count as u64;
                    return Ok(Some(Step::Bytes(Chunk { at, bytes: &self.buffer[..count] })));
                }
                Read::Dropped(range) => {
                    self.at = range.end.clamp(at + 1, self.end);
                    return Ok(Some(Step::Dropped(at..self.at)));
                }
                Read::Other { until } => self.at = until.clamp(at + 1, self.end),
            }
        }
        Ok(None)
    }
}
