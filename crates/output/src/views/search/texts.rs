//! Splits chunks into the texts that are searched: plain or raw lines.

use std::collections::VecDeque;
use std::{io, str};

use super::Reading;
use super::plain::PlainLine;
use super::splitter::{SplitLine, Splitter};
use crate::views::mapped_bytes::{MappedBytes, last_bytes};
use crate::views::{Chunk, Source};

/// How far back to look for the start of a sequence that the cursor is in.
const LOOK_BACK: u64 = 64 * 1024;

/// Splits chunks into texts, wherever the chunks are split. It holds one line.
///
/// A line is the same plain and raw if nothing in it has to be cleaned. So only the others are
/// cleaned.
#[derive(Debug, Clone)]
pub(super) struct Texts {
    reading: Reading,
    /// Splits the lines that need no cleaning.
    splitter: Splitter,
    /// Cleans the other lines.
    plain: PlainLine,
    /// The bytes of the current chunk before this offset need no cleaning.
    clean_to: u64,
    ready: VecDeque<SplitLine>,
}

impl Texts {
    pub(super) fn new(reading: Reading) -> Self {
        Self {
            reading,
            splitter: Splitter::default(),
            plain: PlainLine::default(),
            clean_to: 0,
            ready: VecDeque::new(),
        }
    }

    /// Starts at a cursor, which may be within a sequence or a character.
    pub(super) fn start_at(&mut self, source: &dyn Source, from: u64) -> io::Result<()> {
        if self.reading == Reading::Raw || from == 0 {
            return Ok(());
        }
        let range = from.saturating_sub(LOOK_BACK)..from;
        let mut before = last_bytes(source, range, LOOK_BACK as usize)?;
        let newline = before.bytes().iter().rposition(|byte| *byte == b'\n');
        before.keep_from(newline.map_or(0, |newline| newline + 1));
        self.plain.start_within(before, from);
        Ok(())
    }

    /// Takes bytes off the front of `chunk` until a text is complete or the chunk is empty.
    pub(super) fn feed(&mut self, chunk: &mut Chunk<'_>) -> Option<SplitLine> {
        if self.reading == Reading::Raw {
            return self.splitter.feed(chunk);
        }
        while self.ready.is_empty() && !chunk.bytes.is_empty() {
            let clean = self.clean_bytes(chunk);
            if clean == 0 {
                self.clean_line(chunk);
            } else if let Some(line) = self.splitter.feed_from(chunk, clean) {
                return Some(line);
            }
        }
        self.ready.pop_front()
    }

    /// Uses the memory of a text again.
    pub(super) fn reuse(&mut self, text: SplitLine) {
        self.splitter.reuse(text);
    }

    /// Ends the current line, if there is one. It has been taken when this returns `None`.
    pub(super) fn end_line(&mut self) -> Option<SplitLine> {
        self.plain.end_line(None, &mut self.ready);
        self.ready.pop_front().or_else(|| self.splitter.end_line())
    }

    /// The line as it is so far, if it has a text.
    pub(super) fn so_far(&self) -> Option<SplitLine> {
        self.plain.so_far().or_else(|| self.splitter.so_far())
    }

    /// How many bytes at the front of the chunk need no cleaning.
    fn clean_bytes(&mut self, chunk: &Chunk<'_>) -> usize {
        if self.plain.has_begun() {
            return 0;
        }
        if self.clean_to <= chunk.at {
            self.clean_to = chunk.at + clean_prefix(chunk.bytes) as u64;
        }
        (self.clean_to - chunk.at) as usize
    }

    /// Cleans the current line up to its end or that of the chunk.
    fn clean_line(&mut self, chunk: &mut Chunk<'_>) {
        let begun = std::mem::take(&mut self.splitter.line);
        self.plain.go_on(begun, &mut self.ready);
        let mut part = chunk.take_line();
        let newline = part.bytes.ends_with(b"\n").then_some(part.at + part.bytes.len() as u64 - 1);
        let text = part.take(part.bytes.len() - usize::from(newline.is_some()));
        self.plain.push(MappedBytes::from(text), &mut self.ready);
        if newline.is_some() {
            self.plain.end_line(newline, &mut self.ready);
        }
    }
}

/// How many bytes to look at together, which is faster than one by one.
const BLOCK: usize = 1024;

/// How many bytes at the front have nothing that must be cleaned: valid UTF-8 without control
/// characters other than tab and the end of a line.
fn clean_prefix(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        let block = &bytes[at..bytes.len().min(at + BLOCK)];
        // The byte after the last one is not known yet.
        let next = bytes.get(at + block.len()).copied().unwrap_or_default();
        let control = first_control(block, next);
        let (clean, is_valid) = match str::from_utf8(&block[..control.unwrap_or(block.len())]) {
            Ok(text) => (text.len(), true),
            // A character can be split by the end of the block.
            Err(error) => (error.valid_up_to(), error.error_len().is_none()),
        };
        at += clean;
        if control.is_some() || !is_valid || clean == 0 {
            break;
        }
    }
    at
}

/// The index of the first control character, if `next` follows the block.
fn first_control(block: &[u8], next: u8) -> Option<usize> {
    let (last, most) = block.split_last()?;
    // Without a branch, so that the compiler can look at many bytes at once.
    let found = block.windows(2).fold(false, |found, pair| found | is_control(pair[0], pair[1]));
    if found {
        block.windows(2).position(|pair| is_control(pair[0], pair[1]))
    } else {
        is_control(*last, next).then_some(most.len())
    }
}

/// Whether a control character begins here that is neither a tab nor a part of the end of a line.
fn is_control(byte: u8, next: u8) -> bool {
    let in_line = (byte == b'\t') | (byte == b'\n') | ((byte == b'\r') & (next == b'\n'));
    ((byte < b' ') & !in_line) | (byte == 0x7F) | ((byte == 0xC2) & (next < 0xA0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_must_be_cleaned_is() {
        let long = "x".repeat(BLOCK - 1);
        for (clean, rest) in [
            ("", "\x1b[31m"),
            ("ab\tc\r\nd", "\re"),
            ("a\n\n", "\0"),
            ("é€😀", "\x7f"),
            ("a", "\u{9b}"),
            ("a\u{a0}", ""),
            ("a", "\r"),
            (&format!("{long}\r\n"), ""),
            (&format!("{long}€{long}"), "\x08"),
        ] {
            let text = format!("{clean}{rest}");
            assert_eq!(clean_prefix(text.as_bytes()), clean.len(), "{text:?}");
        }
        assert_eq!(clean_prefix(b"ab\xFFc"), 2);
        assert_eq!(clean_prefix(b"ab\xE2\x82"), 2, "the character may still be completed");
    }
}
