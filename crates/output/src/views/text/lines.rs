//! Turns chunks of bytes into lines of text.

use std::ops::Range;

use super::TextLine;
use super::cleaner::Cleaner;
use crate::views::{Chunk, mapped_bytes::MappedBytes};

/// Cleans line by line, wherever the chunks are split. It holds one line.
#[derive(Debug, Default)]
pub(super) struct TextLines {
    cleaner: Cleaner,
    range: Option<Range<u64>>,
}

impl TextLines {
    /// Takes bytes off the front of `chunk` until a line is complete or the chunk is empty. A line
    /// of more than 65,536 characters is cut: the text has the first ones.
    pub(super) fn feed(&mut self, chunk: &mut Chunk<'_>) -> Option<TextLine> {
        let part = chunk.take_line();
        if part.bytes.is_empty() {
            return None;
        }
        self.range.get_or_insert(part.at..part.at).end = chunk.at;
        let whole = part.bytes.strip_suffix(b"\n");
        let bytes = Chunk { at: part.at, bytes: whole.unwrap_or(part.bytes) };
        self.cleaner.push(MappedBytes::from(bytes), |_, _| ());
        whole.and_then(|_| self.complete_line())
    }

    /// Ends the line without a newline, at the end of the log or at a dropped range. Returns
    /// `None` if the line has no text.
    pub(super) fn end_line(&mut self) -> Option<TextLine> {
        self.complete_line().filter(|line| !line.text.is_empty())
    }

    fn complete_line(&mut self) -> Option<TextLine> {
        self.cleaner.end_line(|_, _| ());
        let range = self.range.take()?;
        let cells = &mut self.cleaner.cells;
        let cut = cells.overflowed.then(|| range.clone());
        let text = cells.all().iter().map(|cell| cell.character).collect();
        cells.clear();
        Some(TextLine { text, range, cut, repeats: None })
    }
}
