//! Lines: the first or the last.
//!
//! A line ends after its newline, at the end of the log or at a dropped range; a last line without
//! newline is a line. Only lines that are there count: how many lines a dropped range had is unknown.
//!
//! The text of a line is its bytes without the newline. The budget counts text and one byte between
//! lines. A line that does not fit is left out, unless it is the only one: then it is cut, at its
//! end for the first lines and at its beginning for the last lines.

mod gatherer;
mod last;

use std::{io, ops::Range};

use super::Source;
use super::walk::Walk;
use gatherer::Gatherer;

pub use last::last;

/// Lines in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    pub lines: Vec<Line>,
    /// What is left to read: after the lines or, for the last lines, before them.
    pub rest: Option<Range<u64>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The bytes of the line, newline included.
    pub range: Range<u64>,
    pub text: Vec<u8>,
    /// The part of the range that did not fit into the text.
    pub cut: Option<Range<u64>>,
}

/// The first `count` lines, at most `max_bytes`.
pub fn first(source: &dyn Source, count: u64, max_bytes: usize) -> io::Result<Lines> {
    let walk = Walk::new(source, 0..source.end());
    Gatherer::new(count, max_bytes).gather(walk, source.end())
}

#[cfg(test)]
mod tests {
    use super::{super::Slice, *};

    fn line(start: u64, text: &[u8], end: u64) -> Line {
        Line { range: start..end, text: text.to_vec(), cut: None }
    }

    #[test]
    fn a_last_line_without_newline_is_a_line() {
        let source = Slice::new(b"a\n\r\nb");
        let want = [line(0, b"a", 2), line(2, b"\r", 4), line(4, b"b", 5)];
        let all = Lines { lines: want.to_vec(), rest: None };
        assert_eq!(first(&source, 3, 100).unwrap(), all);
        assert_eq!(first(&source, u64::MAX, 100).unwrap(), all);
        assert_eq!(last(&source, 3, 100).unwrap(), all);
        assert_eq!(last(&source, u64::MAX, 100).unwrap(), all);
    }

    #[test]
    fn the_rest_is_named() {
        let source = Slice::new(b"a\nb\nc\nd\n");
        let rest = |lines: Lines| (lines.lines.len(), lines.rest);
        assert_eq!(rest(first(&source, 2, 100).unwrap()), (2, Some(4..8)));
        assert_eq!(rest(first(&source, 9, 100).unwrap()), (4, None));
        assert_eq!(rest(last(&source, 1, 100).unwrap()), (1, Some(0..6)));
        assert_eq!(rest(first(&source, 9, 4).unwrap()), (2, Some(4..8)));
        assert_eq!(rest(last(&source, 9, 4).unwrap()), (2, Some(0..4)));
        assert_eq!(rest(first(&source, 0, 100).unwrap()), (0, Some(0..8)));
        assert_eq!(rest(last(&source, 0, 100).unwrap()), (0, Some(0..8)));
    }

    #[test]
    fn a_line_longer_than_the_budget_is_cut_and_the_cut_named() {
        let source = Slice::new("€bcdef€\n".as_bytes());
        let cut = |lines: Lines| lines.lines.into_iter().map(|line| (line.text, line.cut)).next();
        assert_eq!(cut(first(&source, 1, 4).unwrap()), Some(("€b".into(), Some(4..12))));
        assert_eq!(cut(first(&source, 1, 10).unwrap()), Some(("€bcdef".into(), Some(8..12))));
        assert_eq!(cut(last(&source, 1, 4).unwrap()), Some(("f€".into(), Some(0..7))));
        assert_eq!(cut(last(&source, 1, 10).unwrap()), Some(("bcdef€".into(), Some(0..3))));
        assert_eq!(cut(last(&source, 1, 11).unwrap()), Some(("€bcdef€".into(), None)));
    }

    #[test]
    fn empty_lines_use_the_budget_too() {
        let source = Slice::new(&[b'\n'; 50]);
        assert_eq!(first(&source, 50, 9).unwrap().lines.len(), 10);
        assert_eq!(last(&source, 50, 9).unwrap().lines.len(), 10);
    }
}
