//! The log as readable text: escape sequences removed, overwritten lines resolved, repeated lines
//! folded.
//!
//! A line is what a terminal finally shows of it: `\r` and `\b` move the cursor back, later
//! characters overwrite earlier ones, the rest of a longer earlier text stays, and `CSI K` erases.
//! It does not emulate a whole terminal: every character takes one cell, the cursor never leaves
//! the text of its line, no blanks are added, and text that scrolled away is kept. Tab is the only
//! control character in the text.
//!
//! An escape sequence ends with its line at the latest, so an unfinished one hides little.

pub(super) mod cells;
pub(super) mod cleaner;
mod escapes;
mod lines;

use std::{
    io,
    ops::{ControlFlow, Range},
};

use super::Source;
use super::walk::{Walk, WalkStep};
use lines::TextLines;

/// The lines of a range as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    pub lines: Vec<TextLine>,
    /// The part of the range that did not fit into the budget.
    pub rest: Option<Range<u64>>,
}

/// A line as text, and how often it was repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextLine {
    pub text: String,
    /// The bytes of the line, newline included.
    pub range: Range<u64>,
    /// If the text is incomplete, the range to fetch.
    pub cut: Option<Range<u64>>,
    pub repeats: Option<Repeats>,
}

/// The lines that were folded into the line before them because their text is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeats {
    pub count: u64,
    pub range: Range<u64>,
}

/// The text of `range`, at most `max_bytes`, counting one byte for the end of each line.
///
/// A line that does not fit is left to the rest, unless it is the only one: then it is cut. A last
/// line without newline counts as a line if it has any text.
pub fn text(source: &dyn Source, range: Range<u64>, max_bytes: usize) -> io::Result<Text> {
    let end = range.end.min(source.end());
    let mut lines = TextLines::default();
    let mut page = TextPage { max_bytes, used: 0, lines: Vec::new(), dropped_to: 0 };
    let mut flow = Walk::new(source, range).try_for_each(|step| {
        match step {
            WalkStep::Bytes(mut chunk) => {
                while let Some(line) = lines.feed(&mut chunk) {
                    page.add(line)?;
                }
            }
            WalkStep::Dropped(range) => {
                lines.end_line().map_or(ControlFlow::Continue(()), |line| page.add(line))?;
                page.dropped_to = range.end;
            }
        }
        ControlFlow::Continue(())
    })?;
    if flow.is_continue() {
        flow = lines.end_line().map_or(flow, |line| page.add(line));
    }
    let rest = flow.break_value().map(|from| from..end);
    Ok(Text { lines: page.lines, rest })
}

/// Folds repeated lines and keeps to the budget.
struct TextPage {
    max_bytes: usize,
    used: usize,
    lines: Vec<TextLine>,
    /// The end of the last dropped range: lines before it are not repeated by those after it.
    dropped_to: u64,
}

impl TextPage {
    /// Breaks with the start of the line if it does not fit.
    fn add(&mut self, mut line: TextLine) -> ControlFlow<u64> {
        if let Some(last) = self.lines.last_mut()
            && last.range.start >= self.dropped_to
            && last.is_repeated_by(&line)
        {
            last.repeat(line.range);
            return ControlFlow::Continue(());
        }
        if self.used + line.text.len() > self.max_bytes {
            if !self.lines.is_empty() {
                return ControlFlow::Break(line.range.start);
            }
            line.text.truncate(line.text.floor_char_boundary(self.max_bytes));
            line.cut = Some(line.range.clone());
            self.used = self.max_bytes;
        }
        self.used += line.text.len() + 1;
        self.lines.push(line);
        ControlFlow::Continue(())
    }
}

impl TextLine {
    fn is_repeated_by(&self, line: &Self) -> bool {
        self.cut.is_none() && line.cut.is_none() && self.text == line.text
    }

    fn repeat(&mut self, range: Range<u64>) {
        let repeats =
            self.repeats.get_or_insert_with(|| Repeats { count: 0, range: range.clone() });
        repeats.count += 1;
        repeats.range.end = range.end;
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Slice, *};

    fn check(input: &[u8], want: &[&str]) {
        let text = text(&Slice::new(input), 0..u64::MAX, usize::MAX / 2).unwrap();
        let lines: Vec<&str> = text.lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(lines, want, "{}", input.escape_ascii());
    }

    #[test]
    fn escape_sequences_are_removed() {
        check(b"\x1b[1;31mred\x1b[0m \x1b[?25lx", &["red x"]);
        check(b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b]8;;\x1b\\c", &["abc"]);
        check(b"\x1bPq#1\x1b\\a\x1b_x\x1b\\b\x1b^x\x1b\\c\x1bXx\x1b\\d", &["abcd"]);
        check(b"\x1b(Ba\x1b7b\x1b#8c\x1b=", &["abc"]);
        check(b"\x9b1ma\x9dtitle\x9cb\x84c", &["abc"]);
        check(b"a\x07\0\x7fb\tc \xC2\x9b1m", &["ab\tc 1m"]);
    }

    #[test]
    fn bytes_of_a_character_start_no_sequence() {
        check("\u{1F600}\u{201D}\u{DB}".as_bytes(), &["\u{1F600}\u{201D}\u{DB}"]);
        check(b"a\xFFb\xE2\x82", &["a\u{FFFD}b\u{FFFD}"]);
    }

    #[test]
    fn an_unfinished_sequence_ends_with_its_line_or_at_its_limit() {
        check(b"a\x1b]0;never\nb\x1b[12\nc\x1b\nd\x1bPx", &["a", "b", "c", "d"]);
        check(b"a\x1b[1\x18b\x1b]x\x1b[31mc", &["abc"]);
        check(&[b"\x1b[", [b'1'; 66].as_slice()].concat(), &["11"]);
        check(&[b"\x1b", [b' '; 66].as_slice(), b"x"].concat(), &[" x"]);
        check(&[b"\x1b]", vec![b'x'; 65_538].as_slice()].concat(), &["xx"]);
    }

    #[test]
    fn an_overwritten_line_reads_as_on_a_terminal() {
        check(b" 10%\r 50%\r100%\r\n", &["100%"]);
        check(b"longer\rabc\n", &["abcger"]);
        check(b"longer\r\x1b[Kabc\n", &["abc"]);
        check(b"longer\x1b[2Kabc\n", &["abc"]);
        check(b"ab\x08c\x08\x08\x08\x08d\n", &["dc"]);
        check(b"abcdef\x1b[3GX\x1b[CY\x1b[3DZ", &["abZdYf"]);
        check(b"ab\x1b[9Gc\x1b[9Cd", &["abcd"]);
    }

    #[test]
    fn repeated_lines_are_folded_and_their_range_named() {
        let source = Slice::new(b"a\nb\nb\n\x1b[1mb\nb").without(0..2);
        let view = text(&source, 0..u64::MAX, 100).unwrap();
        let repeats = Some(Repeats { count: 3, range: 4..13 });
        let line = TextLine { text: "b".into(), range: 2..4, cut: None, repeats };
        assert_eq!(view.lines, [line]);
    }

    #[test]
    fn lines_on_both_sides_of_a_dropped_range_are_not_folded() {
        let view = text(&Slice::new(b"b\nxxb\n").without(2..4), 0..u64::MAX, 100).unwrap();
        assert_eq!(view.lines.len(), 2);
        assert!(view.lines.iter().all(|line| line.repeats.is_none()));
    }

    #[test]
    fn text_that_does_not_fit_is_named() {
        let ranges = |input: &str, max_bytes| {
            let view = text(&Slice::new(input.as_bytes()), 0..u64::MAX, max_bytes).unwrap();
            let lines: Vec<_> = view.lines.into_iter().map(|line| (line.text, line.cut)).collect();
            (lines, view.rest)
        };
        let whole = |text: &str| (text.to_owned(), None);
        assert_eq!(ranges("ab\ncd\n", 5), (vec![whole("ab"), whole("cd")], None));
        assert_eq!(ranges("ab\ncd\n", 4), (vec![whole("ab")], Some(3..6)));
        assert_eq!(ranges("a€\n\n", 3), (vec![("a".to_owned(), Some(0..5))], Some(5..6)));
        let long = "x".repeat(65_537);
        let cut = vec![(long[1..].to_owned(), Some(0..65_537))];
        assert_eq!(ranges(&long, 100_000), (cut, None));
        assert_eq!(ranges(&format!("{long}\r\x1b[Kab"), 100_000), (vec![whole("ab")], None));
    }
}
