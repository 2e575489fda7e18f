//! Turns chunks of bytes into clean lines.

use std::ops::Range;

use super::cells::Cells;
use super::escapes::Escapes;
use crate::decode::{Assembler, Decoded};
use crate::views::Chunk;

/// Cleans line by line; the lines do not depend on where the chunks are split. It holds one line.
#[derive(Debug, Default)]
pub struct Cleaner {
    assembler: Assembler,
    escapes: Escapes,
    cells: Cells,
    range: Option<Range<u64>>,
}

/// A line as it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanLine {
    pub text: String,
    /// The bytes of the line, newline included.
    pub range: Range<u64>,
    /// The range to fetch if the line has more than 65,536 characters; the text has the first.
    pub cut: Option<Range<u64>>,
}

impl Cleaner {
    /// Takes bytes off the front of `chunk` until a line is complete or the chunk is empty.
    pub fn feed(&mut self, chunk: &mut Chunk<'_>) -> Option<CleanLine> {
        let part = chunk.take_line();
        if part.bytes.is_empty() {
            return None;
        }
        self.range.get_or_insert(part.at..part.at).end = chunk.at;
        let whole = part.bytes.strip_suffix(b"\n");
        for &byte in whole.unwrap_or(part.bytes) {
            for decoded in self.assembler.push(byte) {
                self.apply(decoded);
            }
        }
        whole.and_then(|_| self.complete_line())
    }

    /// Ends the line without a newline, at the end of the log or at a dropped range. Returns
    /// `None` if the line has no text.
    pub fn end_line(&mut self) -> Option<CleanLine> {
        self.complete_line().filter(|line| !line.text.is_empty())
    }

    fn apply(&mut self, decoded: Decoded) {
        if let Some(edit) = self.escapes.push(decoded) {
            self.cells.apply(edit);
        }
    }

    fn complete_line(&mut self) -> Option<CleanLine> {
        if let Some(decoded) = self.assembler.finish() {
            self.apply(decoded);
        }
        self.escapes = Escapes::default();
        let range = self.range.take()?;
        let cut = self.cells.overflowed().then(|| range.clone());
        Some(CleanLine { text: self.cells.take_text(), range, cut })
    }
}
