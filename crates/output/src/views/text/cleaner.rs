//! Turns the bytes of a line into cells.

use std::mem;
use std::ops::Range;

use super::cells::Cells;
use super::escapes::Escapes;
use crate::decode::{characters, unfinished};
use crate::views::mapped_bytes::MappedBytes;

/// Cleans one line; its cells do not depend on where the bytes are split.
#[derive(Debug, Clone, Default)]
pub(in crate::views) struct Cleaner {
    /// The beginning of a character.
    held: MappedBytes,
    escapes: Escapes,
    pub(in crate::views) cells: Cells,
    /// Characters that begin before this offset are not shown.
    from: u64,
}

impl Cleaner {
    /// Takes bytes of the line, which has no newline, and calls `after_each` with the cells after
    /// each character and the range of that character.
    pub(in crate::views) fn push(
        &mut self,
        bytes: MappedBytes,
        after_each: impl FnMut(&mut Cells, Range<u64>),
    ) {
        let mut bytes =
            if self.held.is_empty() { bytes } else { mem::take(&mut self.held).joined(bytes) };
        let complete = bytes.len() - unfinished(bytes.bytes());
        self.held = bytes.split_off(complete);
        self.apply(&bytes, after_each);
    }

    /// Starts within a line, at the offset `from`, after these bytes of it. None of them is shown.
    pub(in crate::views) fn start_within(&mut self, before: MappedBytes, from: u64) {
        self.from = from;
        self.push(before, |_, _| ());
    }

    /// Whether the next byte begins a character outside of a sequence.
    pub(in crate::views) fn is_between_characters(&self) -> bool {
        self.held.is_empty() && self.escapes.is_text()
    }

    /// Ends the line: an unfinished character is invalid, and an unfinished sequence is over. The
    /// cells stay.
    pub(in crate::views) fn end_line(&mut self, after_each: impl FnMut(&mut Cells, Range<u64>)) {
        let unfinished = mem::take(&mut self.held);
        self.apply(&unfinished, after_each);
        self.escapes = Escapes::default();
    }

    fn apply(&mut self, bytes: &MappedBytes, mut after_each: impl FnMut(&mut Cells, Range<u64>)) {
        let mut index = 0;
        for (len, decoded) in characters(bytes.bytes()) {
            let range = bytes.range_of(index..index + len);
            index += len;
            if range.start < self.from {
                self.escapes.push(decoded, range, &mut Cells::default());
                continue;
            }
            self.escapes.push(decoded, range.clone(), &mut self.cells);
            after_each(&mut self.cells, range);
        }
    }
}
