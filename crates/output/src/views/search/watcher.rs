//! Watches for a pattern while output arrives.

use std::io;
use std::ops::{ControlFlow, Range};

use regex::bytes::Regex;

use super::splitter::{SplitLine, Splitter};
use crate::views::walk::{Walk, WalkStep};
use crate::views::{Chunk, Source};

/// Searches complete lines as a search does, and also the line that has not ended yet, so that a
/// prompt is seen at once. So `$` also matches at the end of the output so far. It holds one line.
#[derive(Debug, Clone)]
pub struct Watcher {
    regex: Regex,
    splitter: Splitter,
}

impl Watcher {
    pub fn new(regex: Regex) -> Self {
        Self { regex, splitter: Splitter::default() }
    }

    /// The range of the first match in the lines that `chunk` completes or extends. A line without
    /// end is searched again with each chunk.
    pub fn feed(&mut self, mut chunk: Chunk<'_>) -> Option<Range<u64>> {
        while let Some(line) = self.splitter.feed(&mut chunk) {
            if let Some(seen) = self.find_in(&line) {
                return Some(seen);
            }
        }
        Some(&self.splitter.line)
            .filter(|line| line.fresh() > 0)
            .and_then(|line| self.find_in(line))
    }

    /// The range of the first match in `range` of `source`.
    pub fn look_through(
        &mut self,
        source: &dyn Source,
        range: Range<u64>,
    ) -> io::Result<Option<Range<u64>>> {
        let flow = Walk::new(source, range).try_for_each(|step| match step {
            WalkStep::Bytes(chunk) => {
                self.feed(chunk).map_or(ControlFlow::Continue(()), ControlFlow::Break)
            }
            WalkStep::Dropped(_) => {
                self.end_line();
                ControlFlow::Continue(())
            }
        })?;
        Ok(flow.break_value())
    }

    /// Ends the line before a dropped range.
    pub fn end_line(&mut self) {
        self.splitter.end_line();
    }

    fn find_in(&self, line: &SplitLine) -> Option<Range<u64>> {
        // A match that ends in the repeated bytes was seen before, or is a `^` within the line.
        let found = self.regex.find_iter(line.text()).find(|found| found.end() >= line.known)?;
        Some(line.mapped.range_of(found.range()))
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
            Watcher::new(compile("needle").unwrap()).look_through(source, all.clone()).unwrap()
        };
        assert_eq!(look(&source), Some(at..at + 6));
        assert_eq!(look(&Slice::new(&long).without(at + 2..at + 3)), None);
    }

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
    fn a_match_across_a_chunk_border_is_seen_when_complete() {
        assert_eq!(seen("ready", &[b"x\nre", b"a", b"dy\nmore"]), Some((2, 2..7)));
        assert_eq!(seen("ready$", &[b"ready\r", b"\n"]), Some((1, 0..5)));
    }

    #[test]
    fn a_match_never_spans_lines_and_empty_output_is_not_a_line() {
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
