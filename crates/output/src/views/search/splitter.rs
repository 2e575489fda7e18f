//! Splits chunks into lines, and long lines into overlapping parts of 64 KiB.

use std::ops::Range;

use crate::decode::{character_across, unfinished};
use crate::views::{Chunk, mapped_bytes::MappedBytes};

pub(super) const LONGEST_LINE: usize = 64 * 1024;
/// How much of a part is searched again with the next: a match of this length is always found.
pub(super) const OVERLAP: usize = 8 * 1024;

/// Splits at newlines and at 64 KiB, wherever the chunks are split. It holds one line.
#[derive(Debug, Clone, Default)]
pub(super) struct Splitter {
    /// The line read so far.
    pub(super) line: SplitLine,
}

/// A text to search: a line, a part of a long one, or what a line showed before it was overwritten.
#[derive(Debug, Clone, Default)]
pub(super) struct SplitLine {
    pub(super) mapped: MappedBytes,
    /// How many bytes at the front repeat the end of the part before.
    pub(super) known: usize,
    /// The index where the next part begins: at the end, or earlier if the line continues.
    pub(super) resume: usize,
    /// The bytes of the log that it was made from, without those of earlier parts.
    pub(super) range: Range<u64>,
    /// How many bytes were read for it.
    pub(super) scanned: usize,
    pub(super) kind: TextKind,
}

/// What a text is to its line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TextKind {
    /// A line, or the last part of one.
    #[default]
    Whole,
    /// The line continues after it.
    Part,
    /// Another text of the same line follows.
    Overwritten,
}

impl Splitter {
    /// Takes bytes off the front of `chunk` until a line is complete or the chunk is empty.
    pub(super) fn feed(&mut self, chunk: &mut Chunk<'_>) -> Option<SplitLine> {
        if self.line.fresh() == LONGEST_LINE && !chunk.bytes.is_empty() {
            // A newline ends this line instead of starting an empty one.
            if !chunk.bytes.starts_with(b"\n") {
                return Some(self.break_line());
            }
            self.line.mapped.push(chunk.take(1));
            return self.end_line();
        }
        let size = chunk.bytes.len().min(LONGEST_LINE - self.line.fresh());
        let mut fitting = Chunk { at: chunk.at, bytes: &chunk.bytes[..size] };
        let part = fitting.take_line();
        self.line.mapped.push(chunk.take(part.bytes.len()));
        if part.bytes.ends_with(b"\n") {
            return self.end_line();
        }
        if chunk.bytes.is_empty() { None } else { self.feed(chunk) }
    }

    /// The same with only the first `count` bytes of the chunk.
    pub(super) fn feed_from(&mut self, chunk: &mut Chunk<'_>, count: usize) -> Option<SplitLine> {
        let mut first = Chunk { at: chunk.at, bytes: &chunk.bytes[..count] };
        let line = self.feed(&mut first);
        chunk.take(count - first.bytes.len());
        line
    }

    /// Uses the memory of a line again, between two lines.
    pub(super) fn reuse(&mut self, mut line: SplitLine) {
        if self.line.mapped.is_empty() {
            line.mapped.clear();
            self.line.mapped = line.mapped;
        }
    }

    /// The line read so far, if there is one.
    pub(super) fn so_far(&self) -> Option<SplitLine> {
        Some(&self.line).filter(|line| line.fresh() > 0).cloned()
    }

    /// Ends the current line, if there is one.
    pub(super) fn end_line(&mut self) -> Option<SplitLine> {
        let mut line = std::mem::take(&mut self.line);
        line.resume = line.mapped.len();
        Some(line.finished(TextKind::Whole)).filter(|line| line.scanned > 0)
    }

    /// Returns the line so far as a part. An unfinished character stays for the next part, and so
    /// does a copy of the end, for a match across the border.
    fn break_line(&mut self) -> SplitLine {
        let mut line = std::mem::take(&mut self.line);
        let cut = line.mapped.len() - unfinished(line.mapped.bytes());
        let overlap = cut - OVERLAP;
        let across = character_across(line.mapped.bytes(), overlap);
        line.resume = across.map_or(overlap, |character| character.start);
        self.line.mapped = line.mapped.clone();
        self.line.mapped.keep_from(line.resume);
        self.line.known = cut - line.resume;
        line.mapped.truncate(cut);
        line.finished(TextKind::Part)
    }
}

impl SplitLine {
    fn finished(mut self, kind: TextKind) -> Self {
        self.range = self.mapped.range_of(self.known..self.mapped.len());
        self.scanned = self.fresh();
        self.kind = kind;
        self
    }

    /// How many bytes were in no earlier part.
    pub(super) fn fresh(&self) -> usize {
        self.mapped.len() - self.known
    }

    /// Where to continue after it, if its last hit ends at this index. A search that continues
    /// within a line sees the overlap again, except for hits.
    pub(super) fn next(&self, hit_end: Option<usize>) -> u64 {
        match self.kind {
            TextKind::Part => self.mapped.offset(self.resume.max(hit_end.unwrap_or(0))),
            TextKind::Whole | TextKind::Overwritten => self.range.end,
        }
    }

    /// The log range of a match at these indices.
    pub(super) fn range_of(&self, indices: Range<usize>) -> Range<u64> {
        if self.mapped.is_empty() {
            // A line of nothing but escape sequences.
            return self.range.start..self.range.start;
        }
        self.mapped.range_of(indices)
    }

    /// The bytes without the line ending.
    pub(super) fn text(&self) -> &[u8] {
        without_line_ending(self.mapped.bytes())
    }
}

pub(super) fn without_line_ending(line: &[u8]) -> &[u8] {
    match line.strip_suffix(b"\n") {
        Some(text) => text.strip_suffix(b"\r").unwrap_or(text),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(mut input: &[u8], chunk: usize) -> Vec<usize> {
        let (mut splitter, mut lines, mut at) = (Splitter::default(), Vec::new(), 0);
        while !input.is_empty() {
            let (bytes, rest) = input.split_at(chunk.min(input.len()));
            let mut chunk = Chunk { at, bytes };
            while let Some(line) = splitter.feed(&mut chunk) {
                lines.push(line.fresh());
            }
            (input, at) = (rest, chunk.at);
        }
        lines.extend(splitter.end_line().map(|line| line.fresh()));
        lines
    }

    #[test]
    fn a_line_over_64_kib_is_split_between_characters_and_not_before_its_newline() {
        for chunk in [1000, 65_536, 100_000, 1 << 20] {
            let x = |count| vec![b'x'; count];
            assert_eq!(lengths(&x(65_536), chunk), [65_536]);
            assert_eq!(lengths(&[x(65_536), b"\na".to_vec()].concat(), chunk), [65_537, 1]);
            assert_eq!(lengths(&[x(65_537), b"\n".to_vec()].concat(), chunk), [65_536, 2]);
            assert_eq!(lengths(&x(200_000), chunk), [65_536, 65_536, 65_536, 3_392]);
            let text = [x(65_535), "€\n".into()].concat();
            assert_eq!(lengths(&text, chunk), [65_535, 4]);
        }
    }
}
