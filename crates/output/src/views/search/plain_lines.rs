//! Plain lines of bytes that arrive in pieces, without a log.

use super::Reading;
use super::splitter::{SplitLine, TextKind};
use super::texts::Texts;
use crate::views::Chunk;

/// Reads lines as a plain search does. It holds one line.
#[derive(Debug)]
pub struct PlainLines {
    texts: Texts,
    at: u64,
}

/// A text that a person sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainText {
    /// Without a line ending.
    pub text: Vec<u8>,
    /// How many bytes at the front repeat the end of the part before, for a match across the border.
    pub known: usize,
    pub kind: TextKind,
}

impl Default for PlainLines {
    fn default() -> Self {
        Self { texts: Texts::new(Reading::Plain), at: 0 }
    }
}

impl PlainLines {
    /// The texts that these bytes complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<PlainText> {
        let (mut chunk, mut texts) = (Chunk { at: self.at, bytes }, Vec::new());
        while let Some(line) = self.texts.feed(&mut chunk) {
            texts.push(line.into());
        }
        self.at = chunk.at;
        texts
    }

    /// The line so far, if it has a text.
    pub fn so_far(&self) -> Option<PlainText> {
        self.texts.so_far().map(PlainText::from)
    }

    /// The last texts of a line that ends without a newline.
    pub fn end_line(&mut self) -> Vec<PlainText> {
        std::iter::from_fn(|| self.texts.end_line()).map(PlainText::from).collect()
    }
}

impl From<SplitLine> for PlainText {
    fn from(line: SplitLine) -> Self {
        Self { text: line.text().to_vec(), known: line.known, kind: line.kind }
    }
}
