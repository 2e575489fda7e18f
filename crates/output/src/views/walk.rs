//! Reads a source forward, chunk by chunk.

use std::{
    io::{self, BufRead},
    ops::{ControlFlow, Range},
};

use super::Source;
use super::source::Read;

/// How many bytes are read at once.
pub(super) const CHUNK: usize = 64 * 1024;

/// Bytes and the log offset of the first.
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

    /// Takes the bytes up to and including the next newline, or all if there is none.
    pub(super) fn take_line(&mut self) -> Self {
        // Faster than a loop over the bytes, by the `memchr` of the C library.
        let count = BufRead::skip_until(&mut &*self.bytes, b'\n');
        self.take(count.expect("a slice can be read"))
    }
}

#[derive(Debug)]
pub(super) enum WalkStep<'a> {
    Bytes(Chunk<'a>),
    Dropped(Range<u64>),
}

/// A walk through a range of a source; it holds one chunk.
pub(super) struct Walk<'s> {
    source: &'s dyn Source,
    at: u64,
    end: u64,
    buffer: Vec<u8>,
}

impl<'s> Walk<'s> {
    pub(super) fn new(source: &'s dyn Source, range: Range<u64>) -> Self {
        let end = range.end.min(source.end());
        let size = end.saturating_sub(range.start).min(CHUNK as u64) as usize;
        Self { source, at: range.start, end, buffer: vec![0; size] }
    }

    /// The offset up to which the walk has read.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Passes each step to `take` until it breaks or the range ends.
    pub(super) fn try_for_each<B>(
        &mut self,
        mut take: impl FnMut(WalkStep<'_>) -> ControlFlow<B>,
    ) -> io::Result<ControlFlow<B>> {
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue()
            && let Some(step) = self.next_up_to(CHUNK)?
        {
            flow = take(step);
        }
        Ok(flow)
    }

    /// The next step, of at most `max_bytes` bytes.
    pub(super) fn next_up_to(&mut self, max_bytes: usize) -> io::Result<Option<WalkStep<'_>>> {
        while self.at < self.end {
            let at = self.at;
            let size = (self.end - at).min(max_bytes.min(CHUNK) as u64) as usize;
            match self.source.read_at(at, &mut self.buffer[..size])? {
                Read::Bytes(0) => break,
                Read::Bytes(count) => {
                    self.at += count as u64;
                    return Ok(Some(WalkStep::Bytes(Chunk { at, bytes: &self.buffer[..count] })));
                }
                Read::Dropped(range) => {
                    self.at = range.end.clamp(at + 1, self.end);
                    return Ok(Some(WalkStep::Dropped(at..self.at)));
                }
                Read::Other { until } => self.at = until.clamp(at + 1, self.end),
            }
        }
        Ok(None)
    }
}
