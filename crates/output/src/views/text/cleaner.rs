//! Turns chunks of bytes into clean lines.

use std::{mem, ops::Range};

use super::TextLine;
use super::cells::Cells;
use super::escapes::Escapes;
use crate::decode::{Decoder, characters};
use crate::views::Chunk;

/// Cleans line by line; the lines do not depend on where the chunks are split. It holds one line.
#[derive(Debug, Default)]
pub(super) struct Cleaner {
    decoder: Decoder,
    escapes: Escapes,
    cells: Cells,
    range: Option<Range<u64>>,
}

impl Cleaner {
    /// Takes bytes off the front of `chunk` until a line is complete or the chunk is empty. A line
    /// of more than 65,536 characters is cut: the text has the first ones.
    pub(super) fn feed(&mut self, chunk: &mut Chunk<'_>) -> Option<TextLine> {
        let part = chunk.take_line();
        if part.bytes.is_empty() {
            return None;
        }
        self.range.get_or_insert(part.at..part.at).end = chunk.at;
        let whole = part.bytes.strip_suffix(b"\n");
        let complete = self.decoder.complete(whole.unwrap_or(part.bytes));
        self.apply(&complete);
        whole.and_then(|_| self.complete_line())
    }

    /// Ends the line without a newline, at the end of the log or at a dropped range. Returns
    /// `None` if the line has no text.
    pub(super) fn end_line(&mut self) -> Option<TextLine> {
        self.complete_line().filter(|line| !line.text.is_empty())
    }

    fn apply(&mut self, bytes: &[u8]) {
        characters(bytes).for_each(|decoded| self.escapes.push(decoded, &mut self.cells));
    }

    fn complete_line(&mut self) -> Option<TextLine> {
        let unfinished = mem::take(&mut self.decoder.held);
        self.apply(&unfinished);
        self.escapes = Escapes::default();
        let range = self.range.take()?;
        let cut = self.cells.overflowed.then(|| range.clone());
        Some(TextLine { text: self.cells.take_text(), range, cut, repeats: None })
    }
}
