//! Backward through a source, a block at a time.

use std::{io, ops::Range};

use super::Source;
use super::piece::{Part, Parts, Piece};
use super::walk::CHUNK;

/// The last `limit` bytes of `range`, fewer if something is dropped behind them.
pub(super) fn last_bytes(
    source: &dyn Source,
    range: Range<u64>,
    limit: usize,
) -> io::Result<Piece> {
    let mut blocks = Vec::new();
    let mut missing = limit;
    let mut walk = WalkBack::new(source, range);
    while missing > 0
        && let Some(Part::Kept(mut piece)) = walk.next()?
    {
        piece.keep_from(piece.len().saturating_sub(missing));
        missing -= piece.len();
        blocks.push(piece);
    }
    Ok(blocks.into_iter().rev().fold(Piece::default(), Piece::joined))
}

/// A walk from the end of a range to its start: the parts of it, the last first, none longer than
/// a chunk.
pub(super) struct WalkBack<'s> {
    source: &'s dyn Source,
    start: u64,
    /// What lies behind this place has been looked at or is in `parts`.
    at: u64,
    parts: Vec<Part>,
}

impl<'s> WalkBack<'s> {
    pub(super) fn new(source: &'s dyn Source, range: Range<u64>) -> Self {
        let at = range.end.min(source.end());
        Self { source, start: range.start, at, parts: Vec::new() }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Part>> {
        while self.parts.is_empty() && self.at > self.start {
            self.read_block()?;
        }
        Ok(self.parts.pop())
    }

    fn read_block(&mut self) -> io::Result<()> {
        let last = self.at - 1;
        let from = match self.source.dropped().iter().find(|gone| gone.contains(&last)) {
            // However long it is, a dropped range is one step.
            Some(gone) => gone.start.max(self.start),
            None => self.at.saturating_sub(CHUNK as u64).max(self.start),
        };
        self.parts = Parts::read(self.source, from..self.at, usize::MAX)?.parts;
        self.at = from;
        Ok(())
    }
}
