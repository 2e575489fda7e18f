//! Watches for a pattern while output arrives.

use std::io;
use std::ops::{ControlFlow, Range};

use regex::bytes::Regex;

use super::Reading;
use super::splitter::SplitLine;
use super::texts::Texts;
use crate::views::walk::{Walk, WalkStep};
use crate::views::{Chunk, Source};

/// Searches complete lines as a search does, and also the line that has not ended yet, so that a
/// prompt is seen at once. So `$` also matches at the end of the output so far. It holds one line.
#[derive(Debug, Clone)]
pub struct Watcher {
    regex: Regex,
    texts: Texts,
    has_begun: bool,
}

/// What a watcher was looking for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Where in the log it is.
    pub range: Range<u64>,
    pub text: Vec<u8>,
}

impl Watcher {
    pub fn new(regex: Regex, reading: Reading) -> Self {
        Self { regex, texts: Texts::new(reading), has_begun: false }
    }

    /// The first match in the lines that `chunk` completes or extends. A line without end is
    /// searched again with each chunk.
    pub fn feed(&mut self, mut chunk: Chunk<'_>) -> Option<Seen> {
        while let Some(line) = self.texts.feed(&mut chunk) {
            if let Some(seen) = self.find_in(&line) {
                return Some(seen);
            }
        }
        self.find_in(&self.texts.so_far()?)
    }

    /// The first match in `range` of `source`. The first range can start within a line, the next
    /// starts where the last one ended.
    pub fn look_through(
        &mut self,
        source: &dyn Source,
        range: Range<u64>,
    ) -> io::Result<Option<Seen>> {
        if !self.has_begun {
            self.texts.start_at(source, range.start)?;
            self.has_begun = true;
        }
        let flow = Walk::new(source, range).try_for_each(|step| match step {
            WalkStep::Bytes(chunk) => {
                self.feed(chunk).map_or(ControlFlow::Continue(()), ControlFlow::Break)
            }
            WalkStep::Dropped(_) => {
                self.end_line().map_or(ControlFlow::Continue(()), ControlFlow::Break)
            }
        })?;
        Ok(flow.break_value())
    }

    /// Ends the line before a dropped range: an unfinished character in it has become an invalid one.
    pub fn end_line(&mut self) -> Option<Seen> {
        while let Some(line) = self.texts.end_line() {
            if let Some(seen) = self.find_in(&line) {
                return Some(seen);
            }
        }
        None
    }

    fn find_in(&self, line: &SplitLine) -> Option<Seen> {
        // A match that ends in the repeated bytes was seen before, or is a `^` within the line.
        let found = self.regex.find_iter(line.text()).find(|found| found.end() >= line.known)?;
        let (range, text) = (line.range_of(found.range()), found.as_bytes().to_vec());
        Some(Seen { range, text })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::compile, *};
    use crate::views::Slice;

    #[test]
    fn a_match_is_found_across_chunk_borders_but_not_across_a_dropped_range() {
        let mut long = vec![b'x'; 3 * 64 * 1024 - 2];
        long.extend(b"needle\n");
        // A line is searched in parts of 64 KiB; this one begins just before a border.
        long[2 * 64 * 1024 + 100] = b'\n';
        let source = Slice::new(&long);
        let all = 0..long.len() as u64;
        let at = 3 * 64 * 1024 - 2;
        let look = |source: &dyn Source| {
            let mut watcher = Watcher::new(compile("needle").unwrap(), Reading::Plain);
            watcher.look_through(source, all.clone()).unwrap().map(|seen| seen.range)
        };
        assert_eq!(look(&source), Some(at..at + 6));
        assert_eq!(look(&Slice::new(&long).without(at + 2..at + 3)), None);
    }

    fn seen(pattern: &str, chunks: &[&[u8]]) -> Option<(usize, Range<u64>)> {
        let mut watcher = Watcher::new(compile(pattern).unwrap(), Reading::Plain);
        let mut at = 0;
        chunks.iter().enumerate().find_map(|(turn, bytes)| {
            let seen = watcher.feed(Chunk { at, bytes });
            at += bytes.len() as u64;
            seen.map(|seen| (turn, seen.range))
        })
    }

    #[test]
    fn a_prompt_is_seen_before_its_line_ends() {
        assert_eq!(seen("login: $", &[b"a\nlog", b"in: "]), Some((1, 2..9)));
    }

    #[test]
    fn a_match_across_a_chunk_border_is_seen_when_complete() {
        assert_eq!(seen("ready", &[b"x\nre", b"a", b"dy\nmore"]), Some((2, 2..7)));
        assert_eq!(seen("error", &[b"\x1b[31mer\x1b", b"[0m", b"ror"]), Some((2, 5..14)));
    }

    #[test]
    fn a_return_ends_a_line_as_a_person_sees_it_and_not_its_bytes() {
        assert_eq!(seen("ready$", &[b"ready\r", b"\n"]), Some((0, 0..5)));
        let mut watcher = Watcher::new(compile("ready$").unwrap(), Reading::Raw);
        assert_eq!(watcher.feed(Chunk { at: 0, bytes: b"ready\r" }), None);
        let seen = Some(Seen { range: 0..5, text: b"ready".to_vec() });
        assert_eq!(watcher.feed(Chunk { at: 6, bytes: b"\n" }), seen);
    }

    #[test]
    fn a_text_that_was_overwritten_at_once_is_seen() {
        assert_eq!(seen("^ 50%$", &[b" 10%\r 50%\r100%\r\n"]), Some((0, 5..9)));
        assert_eq!(seen("50", &[b"50%\x1b[2K\x1b[1Gdone\n"]), Some((0, 0..2)));
        for at in 1..14 {
            let (first, rest) = b" 50%\r\x1b[K100%\n".split_at(at);
            assert!(seen("^ 50%$", &[first, rest]).is_some(), "split at {at}");
        }
    }

    #[test]
    fn a_match_never_spans_lines_and_empty_output_is_not_a_line() {
        assert_eq!(seen("a.b", &[b"a\n", b"b"]), None);
        assert_eq!(seen("^$", &[b"", b"a\n"]), None);
        assert_eq!(seen("^$", &[b"a\n", b"\n"]), Some((1, 2..2)));
    }

    #[test]
    fn a_dropped_range_ends_the_line() {
        let mut watcher = Watcher::new(compile("ab").unwrap(), Reading::Plain);
        assert_eq!(watcher.feed(Chunk { at: 0, bytes: b"a" }), None);
        assert_eq!(watcher.end_line(), None);
        assert_eq!(watcher.feed(Chunk { at: 9, bytes: b"b" }), None);
    }
}
