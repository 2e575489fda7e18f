//! Chunks into lines of at most 64 KiB.

use crate::decode::unfinished;
use crate::views::{Chunk, piece::Piece};

const LONGEST_LINE: usize = 64 * 1024;

/// Splits at newlines and at 64 KiB; any chunking gives the same lines. Memory is one line.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    line: Piece,
}

impl Splitter {
    /// Takes bytes off `chunk` until a line is complete, or all of them.
    pub(super) fn feed(&mut self, chunk: &mut Chunk<'_>) -> Option<Piece> {
        if self.line.len() == LONGEST_LINE && !chunk.bytes.is_empty() {
            // A newline that comes now ends this line rather than making an empty one.
            if !chunk.bytes.starts_with(b"\n") {
                return Some(self.break_line());
            }
            self.line.push(chunk.take(1));
            return self.end_line();
        }
        let room = chunk.bytes.len().min(LONGEST_LINE - self.line.len());
        let mut fitting = Chunk { at: chunk.at, bytes: &chunk.bytes[..room] };
        let part = fitting.take_line();
        self.line.push(chunk.take(part.bytes.len()));
        if part.bytes.ends_with(b"\n") {
            return self.end_line();
        }
        if chunk.bytes.is_empty() { None } else { self.feed(chunk) }
    }

    /// The line so far.
    pub(super) fn open_line(&self) -> &Piece {
        &self.line
    }

    /// Ends the line here, if there is one.
    pub(super) fn end_line(&mut self) -> Option<Piece> {
        Some(std::mem::take(&mut self.line)).filter(|line| !line.is_empty())
    }

    /// Gives what there is as a line, but for the beginning of a character, which stays.
    fn break_line(&mut self) -> Piece {
        let cut = self.line.len() - unfinished(self.line.bytes());
        let mut line = self.line.clone();
        line.truncate(cut);
        self.line.keep_from(cut);
        line
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
                lines.push(line.len());
            }
            (input, at) = (rest, chunk.at);
        }
        lines.extend(splitter.end_line().map(|line| line.len()));
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
