//! Bytes read from a source, with the log offset of each.

use std::{io, ops::Range};

use super::Source;
use super::walk::{CHUNK, Chunk, Walk, WalkStep};

/// Bytes with no dropped range between them. Bytes of another stream may lie between them in the
/// log, so each byte has its own offset.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct MappedBytes {
    bytes: Vec<u8>,
    /// The start of each stretch without gaps: index in `bytes`, offset in the log.
    stretches: Vec<(usize, u64)>,
}

impl MappedBytes {
    pub(super) fn push(&mut self, chunk: Chunk<'_>) {
        if chunk.bytes.is_empty() {
            return;
        }
        if self.is_empty() || self.offset(self.len()) != chunk.at {
            self.stretches.push((self.len(), chunk.at));
        }
        self.bytes.extend_from_slice(chunk.bytes);
    }

    /// Adds the bytes of a character that has this range in the log, which may be of another length.
    pub(super) fn push_character(&mut self, bytes: &[u8], range: Range<u64>) {
        if range.end - range.start == bytes.len() as u64 {
            return self.push(Chunk { at: range.start, bytes });
        }
        for (index, byte) in bytes.iter().enumerate() {
            let is_last = index + 1 == bytes.len();
            let at = if is_last { range.end - 1 } else { range.start };
            // Each in a stretch of its own, even where the offsets happen to follow each other.
            self.stretches.push((self.len(), at));
            self.bytes.push(*byte);
        }
    }

    /// Splits off the bytes from `index` on, and returns them.
    pub(super) fn split_off(&mut self, index: usize) -> Self {
        if index == self.len() {
            return Self::default();
        }
        let mut rest = self.clone();
        rest.keep_from(index);
        self.truncate(index);
        rest
    }

    /// These bytes followed by `next`.
    pub(super) fn joined(mut self, next: Self) -> Self {
        let shift = self.len();
        self.stretches.extend(next.stretches.iter().map(|(start, at)| (start + shift, *at)));
        self.bytes.extend_from_slice(&next.bytes);
        self
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The log offset of the byte at `index`; at the length, the offset after the last byte.
    pub(super) fn offset(&self, index: usize) -> u64 {
        let after_last = index == self.len() && index > 0;
        let within = if after_last { index - 1 } else { index };
        let after = self.stretches.partition_point(|(start, _)| *start <= within);
        let (start, at) = self.stretches[..after].last().copied().unwrap_or_default();
        at + (index - start) as u64
    }

    /// The smallest log range that has all bytes of `indices`.
    pub(super) fn range_of(&self, indices: Range<usize>) -> Range<u64> {
        if indices.is_empty() {
            let at = self.offset(indices.start);
            return at..at;
        }
        if let [(_, at)] = self.stretches.as_slice() {
            return at + indices.start as u64..at + indices.end as u64;
        }
        let (mut first, mut last) = (u64::MAX, 0);
        let after = self.stretches.partition_point(|(start, _)| *start <= indices.start);
        // Offsets grow within a stretch; a later stretch can be before an earlier one.
        for (nth, (start, at)) in self.stretches.iter().enumerate().skip(after.saturating_sub(1)) {
            if *start >= indices.end {
                break;
            }
            let next = self.stretches.get(nth + 1).map_or(indices.end, |(next, _)| *next);
            let offset = |index: usize| at + (index - start) as u64;
            first = first.min(offset(indices.start.max(*start)));
            last = last.max(offset(indices.end.min(next)));
        }
        first..last
    }

    pub(super) fn range(&self) -> Range<u64> {
        self.range_of(0..self.len())
    }

    /// Removes all bytes and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.stretches.clear();
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
        self.stretches.retain(|(start, _)| *start < len);
    }

    /// Removes the bytes before `index`.
    pub(super) fn keep_from(&mut self, index: usize) {
        let offset = self.offset(index);
        self.bytes.drain(..index);
        self.stretches.retain_mut(|(start, _)| {
            let stays = *start > index;
            *start = start.saturating_sub(index);
            stays
        });
        if !self.bytes.is_empty() {
            self.stretches.insert(0, (0, offset));
        }
    }
}

impl From<Chunk<'_>> for MappedBytes {
    fn from(chunk: Chunk<'_>) -> Self {
        let mut mapped = Self::default();
        mapped.push(chunk);
        mapped
    }
}

/// A part of a source: bytes that are there, or a dropped range.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SourcePart {
    Kept(MappedBytes),
    Dropped(Range<u64>),
}

/// Reads `range` until it ends or `limit` bytes are read. Returns the parts and the offset up to
/// which the source was read.
pub(super) fn read_parts(
    source: &dyn Source,
    range: Range<u64>,
    limit: usize,
) -> io::Result<(Vec<SourcePart>, u64)> {
    let mut walk = Walk::new(source, range);
    let (mut parts, mut left) = (Vec::new(), limit);
    while left > 0
        && let Some(step) = walk.next_up_to(left)?
    {
        match (step, parts.last_mut()) {
            (WalkStep::Bytes(chunk), last) => {
                left -= chunk.bytes.len();
                if let Some(SourcePart::Kept(bytes)) = last {
                    bytes.push(chunk);
                } else {
                    let mut bytes = MappedBytes::default();
                    bytes.push(chunk);
                    parts.push(SourcePart::Kept(bytes));
                }
            }
            (WalkStep::Dropped(range), Some(SourcePart::Dropped(last))) => last.end = range.end,
            (WalkStep::Dropped(range), _) => parts.push(SourcePart::Dropped(range)),
        }
    }
    Ok((parts, walk.at()))
}

/// The last `limit` bytes of `range`, fewer if a dropped range comes before them.
pub(super) fn last_bytes(
    source: &dyn Source,
    range: Range<u64>,
    limit: usize,
) -> io::Result<MappedBytes> {
    let mut blocks = Vec::new();
    let mut missing = limit;
    let mut walk = WalkBack::new(source, range);
    while missing > 0
        && let Some(SourcePart::Kept(mut bytes)) = walk.next()?
    {
        bytes.keep_from(bytes.len().saturating_sub(missing));
        missing -= bytes.len();
        blocks.push(bytes);
    }
    Ok(blocks.into_iter().rev().fold(MappedBytes::default(), MappedBytes::joined))
}

/// Walks from the end of a range to its start. The parts come last first, none longer than a
/// chunk.
pub(super) struct WalkBack<'s> {
    source: &'s dyn Source,
    start: u64,
    /// Everything from here on has been returned or is in `parts`.
    at: u64,
    parts: Vec<SourcePart>,
}

impl<'s> WalkBack<'s> {
    pub(super) fn new(source: &'s dyn Source, range: Range<u64>) -> Self {
        let at = range.end.min(source.end());
        Self { source, start: range.start, at, parts: Vec::new() }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<SourcePart>> {
        while self.parts.is_empty() && self.at > self.start {
            let last = self.at - 1;
            let from = match self.source.dropped().iter().find(|gone| gone.contains(&last)) {
                // A dropped range is one step, however long it is.
                Some(gone) => gone.start.max(self.start),
                None => self.at.saturating_sub(CHUNK as u64).max(self.start),
            };
            self.parts = read_parts(self.source, from..self.at, usize::MAX)?.0;
            self.at = from;
        }
        Ok(self.parts.pop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes() -> MappedBytes {
        let mut mapped = MappedBytes::default();
        for (at, bytes) in [(10, b"ab".as_slice()), (12, b"c"), (20, b"de"), (30, b"f")] {
            mapped.push(Chunk { at, bytes });
        }
        mapped
    }

    fn offsets(bytes: &MappedBytes) -> Vec<u64> {
        (0..bytes.len()).map(|index| bytes.offset(index)).collect()
    }

    #[test]
    fn each_byte_has_its_log_offset() {
        assert_eq!(bytes().bytes, b"abcdef");
        assert_eq!(offsets(&bytes()), [10, 11, 12, 20, 21, 30]);
        assert_eq!(bytes().offset(6), 31);
        assert_eq!(bytes().range_of(1..3), 11..13);
        assert_eq!(bytes().range_of(2..4), 12..21);
        assert_eq!(bytes().range_of(3..3), 20..20);
    }

    #[test]
    fn a_cut_keeps_the_offsets_of_the_other_bytes() {
        for cut in 0..=6 {
            let (mut front, mut back) = (bytes(), bytes());
            front.truncate(cut);
            back.keep_from(cut);
            assert_eq!([offsets(&front), offsets(&back)].concat(), offsets(&bytes()));
            assert_eq!([front.bytes(), back.bytes()].concat(), b"abcdef");
        }
    }
}
