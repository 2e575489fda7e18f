//! Bytes in any chunks into clean lines.

use std::ops::Range;

use super::cells::Cells;
use super::escapes::{Act, Escapes};
use crate::decode::Assembler;
use crate::views::Chunk;

/// Cleans line after line; any chunking gives the same lines. Memory is one line.
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
    /// The bytes that it was made of, newline included.
    pub range: Range<u64>,
    /// The range to fetch if the line was longer than 65,536 characters, of which the first are
    /// in the text.
    pub cut: Option<Range<u64>>,
}

impl Cleaner {
    /// Takes bytes off `chunk` until a line is complete, or all of them.
    pub fn feed(&mut self, chunk: &mut Chunk<'_>) -> Option<CleanLine> {
        let part = chunk.take_line();
        if part.bytes.is_empty() {
            return None;
        }
        self.range.get_or_insert(part.at..part.at).end = chunk.at;
        for &byte in part.bytes {
            for decoded in self.assembler.take(byte) {
                match self.escapes.take(decoded) {
                    Some(Act::Edit(edit)) => self.cells.apply(edit),
                    Some(Act::EndLine) => return self.complete_line(),
                    None => {}
                }
            }
        }
        None
    }

    /// Ends the line where no newline does, at the log's end or at a dropped range. A line with
    /// nothing to see is none.
    pub fn end_line(&mut self) -> Option<CleanLine> {
        if let Some(decoded) = self.assembler.give_up()
            && let Some(Act::Edit(edit)) = self.escapes.take(decoded)
        {
            self.cells.apply(edit);
        }
        self.escapes = Escapes::default();
        self.complete_line().filter(|line| !line.text.is_empty())
    }

    fn complete_line(&mut self) -> Option<CleanLine> {
        let range = self.range.take()?;
        let cut = self.cells.overflowed().then(|| range.clone());
        Some(CleanLine { text: self.cells.take_text(), range, cut })
    }
}
