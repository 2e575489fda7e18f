//! Chunks into lines, and long lines into parts of 64 KiB that overlap.

use crate::decode::{character_across, unfinished};
use crate::views::{Chunk, piece::Piece};

const LONGEST_LINE: usize = 64 * 1024;
/// How much of a part is looked at again with the next: a match of this length is always seen.
const OVERLAP: usize = 8 * 1024;

/// Splits at newlines and at 64 KiB; any chunking gives the same lines. Memory is one line.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    line: Line,
}

/// A line, or a part of a long one.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) piece: Piece,
    /// How many bytes at the front are the end of the part before.
    pub(super) known: usize,
    /// Where in this piece the next one begins: behind it, or in it where the line was broken.
    pub(super) resume: usize,
}

impl Splitter {
    /// Takes bytes off `chunk` until a line is complete, or all of them.
    pub(super) fn feed(&mut self, chunk: &mut Chunk<'_>) -> Option<Line> {
        if self.line.fresh() == LONGEST_LINE && !chunk.bytes.is_empty() {
            // A newline that comes now ends this line rather than making an empty one.
            if !chunk.bytes.starts_with(b"\n") {
                return Some(self.break_line());
            }
            self.line.piece.push(chunk.take(1));
            return self.end_line();
        }
        let room = chunk.bytes.len().min(LONGEST_LINE - self.line.fresh());
        let mut fitting = Chunk { at: chunk.at, bytes: &chunk.bytes[..room] };
        let part = fitting.take_line();
        self.line.piece.push(chunk.take(part.bytes.len()));
        if part.bytes.ends_with(b"\n") {
            return self.end_line();
        }
        if chunk.bytes.is_empty() { None } else { self.feed(chunk) }
    }

    /// The line so far.
    pub(super) fn open_line(&self) -> &Line {
        &self.line
    }

    /// Ends the line here, if there is one.
    pub(super) fn end_line(&mut self) -> Option<Line> {
        let mut line = std::mem::take(&mut self.line);
        line.resume = line.piece.len();
        Some(line).filter(|line| line.fresh() > 0)
    }

    /// Gives what there is as a line, but for the beginning of a character, which stays. So does
    /// a copy of the end of it, for a match that goes on behind the border.
    fn break_line(&mut self) -> Line {
        let mut line = std::mem::take(&mut self.line);
        let cut = line.piece.len() - unfinished(line.piece.bytes());
        let overlap = cut - OVERLAP;
        let across = character_across(line.piece.bytes(), overlap);
        line.resume = across.map_or(overlap, |character| character.start);
        self.line.piece = line.piece.clone();
        self.line.piece.keep_from(line.resume);
        self.line.known = cut - line.resume;
        line.piece.truncate(cut);
        line
    }
}

impl Line {
    /// How many bytes were in no part before.
    pub(super) fn fresh(&self) -> usize {
        self.piece.len() - self.known
    }

    /// The bytes without the end of the line.
    pub(super) fn text(&self) -> &[u8] {
        text_of(self.piece.bytes())
    }
}

/// The text of a line: without its end.
pub(super) fn text_of(line: &[u8]) -> &[u8] {
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
    fn a_line_over_64_kib_is_broken_but_no_character_and_no_line_is_made_of_a_newline() {
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
