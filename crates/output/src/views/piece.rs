//! Bytes put together, and where each of them lies in the log.

use std::{io, ops::Range};

use super::Source;
use super::walk::{Chunk, Step, Walk};

/// Bytes with nothing dropped between them. Bytes of another stream may lie between, so each
/// knows its own place.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    bytes: Vec<u8>,
    /// Where a stretch without gaps starts: index in `bytes`, place in the log.
    stretches: Vec<(usize, u64)>,
}

impl Piece {
    pub(super) fn push(&mut self, chunk: Chunk<'_>) {
        if chunk.bytes.is_empty() {
            return;
        }
        if self.is_empty() || self.place(self.len()) != chunk.at {
            self.stretches.push((self.len(), chunk.at));
        }
        self.bytes.extend_from_slice(chunk.bytes);
    }

    /// This piece and then `next`.
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

    /// Where the byte at `index` lies; for the length, the place behind the last byte.
    pub(super) fn place(&self, index: usize) -> u64 {
        let behind_last = index == self.len() && index > 0;
        let within = if behind_last { index - 1 } else { index };
        let after = self.stretches.partition_point(|(start, _)| *start <= within);
        let (start, at) = self.stretches[..after].last().copied().unwrap_or_default();
        at + (index - start) as u64
    }

    /// The places from the first byte of `indices` to behind its last.
    pub(super) fn places(&self, indices: Range<usize>) -> Range<u64> {
        let start = self.place(indices.start);
        let end = if indices.is_empty() { start } else { self.place(indices.end - 1) + 1 };
        start..end
    }

    pub(super) fn range(&self) -> Range<u64> {
        self.places(0..self.len())
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
        self.stretches.retain(|(start, _)| *start < len);
    }

    /// Leaves the bytes from `index` on.
    pub(super) fn keep_from(&mut self, index: usize) {
        let place = self.place(index);
        self.bytes.drain(..index);
        self.stretches.retain_mut(|(start, _)| {
            let stays = *start > index;
            *start = start.saturating_sub(index);
            stays
        });
        if !self.bytes.is_empty() {
            self.stretches.insert(0, (0, place));
        }
    }
}

/// A part of a source: bytes that are there, or a range that is dropped.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    Kept(Piece),
    Dropped(Range<u64>),
}

/// The parts of a range of a source.
pub(super) struct Parts {
    pub(super) parts: Vec<Part>,
    /// The place up to which the source was read.
    pub(super) next: u64,
}

impl Parts {
    /// Reads `range` until it ends or `limit` bytes are there.
    pub(super) fn read(source: &dyn Source, range: Range<u64>, limit: usize) -> io::Result<Self> {
        let mut walk = Walk::new(source, range);
        let (mut parts, mut left) = (Vec::new(), limit);
        while left > 0
            && let Some(step) = walk.next_up_to(left)?
        {
            match (step, parts.last_mut()) {
                (Step::Bytes(chunk), last) => {
                    left -= chunk.bytes.len();
                    if let Some(Part::Kept(piece)) = last {
                        piece.push(chunk);
                    } else {
                        let mut piece = Piece::default();
                        piece.push(chunk);
                        parts.push(Part::Kept(piece));
                    }
                }
                (Step::Dropped(range), Some(Part::Dropped(last))) => last.end = range.end,
                (Step::Dropped(range), _) => parts.push(Part::Dropped(range)),
            }
        }
        Ok(Self { parts, next: walk.at() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece() -> Piece {
        let mut piece = Piece::default();
        for (at, bytes) in [(10, b"ab".as_slice()), (12, b"c"), (20, b"de"), (30, b"f")] {
            piece.push(Chunk { at, bytes });
        }
        piece
    }

    fn places(piece: &Piece) -> Vec<u64> {
        (0..piece.len()).map(|index| piece.place(index)).collect()
    }

    #[test]
    fn each_byte_knows_its_place() {
        assert_eq!(piece().bytes, b"abcdef");
        assert_eq!(places(&piece()), [10, 11, 12, 20, 21, 30]);
        assert_eq!(piece().place(6), 31);
        assert_eq!(piece().places(1..3), 11..13);
        assert_eq!(piece().places(2..4), 12..21);
        assert_eq!(piece().places(3..3), 20..20);
    }

    #[test]
    fn what_is_cut_off_changes_no_place() {
        for cut in 0..=6 {
            let (mut front, mut back) = (piece(), piece());
            front.truncate(cut);
            back.keep_from(cut);
            assert_eq!([places(&front), places(&back)].concat(), places(&piece()));
            assert_eq!([front.bytes(), back.bytes()].concat(), b"abcdef");
        }
    }
}
