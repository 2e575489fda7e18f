//! Watching output for a pattern as it arrives.

use std::io;
use std::ops::Range;

use regex::bytes::Regex;

use super::splitter::{Line, Splitter};
use crate::views::walk::{Step, Walk};
use crate::views::{Chunk, Source};

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
            .filter(|line| line.fresh() > 0)
            .and_then(|line| self.look(line))
    }

    /// Where the pattern is first seen in what `source` has in `range`.
    pub fn look_through(
        &mut self,
        source: &dyn Source,
        range: Range<u64>,
    ) -> io::Result<Option<Range<u64>>> {
        let mut walk = Walk::new(source, range);
        while let Some(step) = walk.next()? {
            match step {
                Step::Bytes(chunk) => {
                    if let Some(seen) = self.feed(chunk) {
                        return Ok(Some(seen));
                    }
                }
                Step::Dropped(_) => self.end_line(),
            }
        }
        Ok(None)
    }

    /// Ends the line where a dropped range follows.
    pub fn end_line(&mut self) {
        self.splitter.end_line();
    }

    fn look(&self, line: &Line) -> Option<Range<u64>> {
        // What ends among the known bytes was seen with them, or is a `^` in the middle of a line.
        let found = self.regex.find_iter(line.text()).find(|found| found.end() >= line.known)?;
        Some(line.piece.places(found.range()))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::compile, *};
    use crate::views::Slice;

    #[test]
    fn a_match_is_found_over_chunk_borders_and_not_over_a_dropped_range() {
        let mut long = vec![b'x'; 3 * 64 * 1024 - 2];
        long.extend(b"needle\n");
        // A line is looked at in pieces of 64 KiB; this one begins just before a border.
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
