//! Watching output for a pattern as it arrives.

use std::ops::Range;

use regex::bytes::Regex;

use super::splitter::{Splitter, text_of};
use crate::views::{Chunk, piece::Piece};

/// Looks at lines as a search does, and at the line that has no end yet: a prompt is seen when it
/// stands there. So `$` also matches where the output has got to. Memory is one line.
#[derive(Debug)]
pub struct Watcher {
    regex: Regex,
    splitter: Splitter,
}

impl Watcher {
    pub fn new(regex: Regex) -> Self {
        Self { regex, splitter: Splitter::default() }
    }

    /// Where the pattern was first seen in the lines that `chunk` belongs to. The line without end
    /// is looked at anew with each chunk.
    pub fn feed(&mut self, mut chunk: Chunk<'_>) -> Option<Range<u64>> {
        while let Some(line) = self.splitter.feed(&mut chunk) {
            if let Some(seen) = self.look(&line) {
                return Some(seen);
            }
        }
        Some(self.splitter.open_line())
            .filter(|line| !line.is_empty())
            .and_then(|line| self.look(line))
    }

    /// Ends the line where a dropped range follows.
    pub fn end_line(&mut self) {
        self.splitter.end_line();
    }

    fn look(&self, line: &Piece) -> Option<Range<u64>> {
        let found = self.regex.find(text_of(line.bytes()))?;
        Some(line.places(found.range()))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::compile, *};

    fn seen(pattern: &str, chunks: &[&[u8]]) -> Option<(usize, Range<u64>)> {
        let mut watcher = Watcher::new(compile(pattern).unwrap());
        let mut at = 0;
        chunks.iter().enumerate().find_map(|(turn, bytes)| {
            let seen = watcher.feed(Chunk { at, bytes });
            at += bytes.len() as u64;
            seen.map(|range| (turn, range))
        })
    }

    #[test]
    fn a_prompt_is_seen_before_its_line_ends() {
        assert_eq!(seen("login: $", &[b"a\nlog", b"in: "]), Some((1, 2..9)));
    }

    #[test]
    fn a_match_over_a_chunk_border_is_seen_when_it_is_whole() {
        assert_eq!(seen("ready", &[b"x\nre", b"a", b"dy\nmore"]), Some((2, 2..7)));
        assert_eq!(seen("ready$", &[b"ready\r", b"\n"]), Some((1, 0..5)));
    }

    #[test]
    fn lines_are_apart_and_no_output_is_no_line() {
        assert_eq!(seen("a.b", &[b"a\n", b"b"]), None);
        assert_eq!(seen("^$", &[b"", b"a\n"]), None);
        assert_eq!(seen("^$", &[b"a\n", b"\n"]), Some((1, 2..2)));
    }

    #[test]
    fn a_dropped_range_ends_the_line() {
        let mut watcher = Watcher::new(compile("ab").unwrap());
        assert_eq!(watcher.feed(Chunk { at: 0, bytes: b"a" }), None);
        watcher.end_line();
        assert_eq!(watcher.feed(Chunk { at: 9, bytes: b"b" }), None);
    }
}
