//! Filters lines of output that arrives in pieces.

use lastbyte_output::views::search::{PlainLines, PlainText, TextKind};
use regex::bytes::Regex;

/// How lines are matched and shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum LineText {
    /// Bytes are matched, and shown.
    #[default]
    Bytes,
    /// Plain text is matched, and the bytes of its line are shown.
    MatchPlain,
    /// Plain text is matched, and shown.
    ShowPlain,
}

/// Lines that match, up to a number of them.
#[derive(Debug, Default)]
pub(crate) struct LineFilter {
    pattern: Option<Regex>,
    text: LineText,
    /// The plain text of the current line, unless bytes are matched.
    plain: PlainLines,
    /// Whether a text of that line has matched.
    has_match: bool,
    /// How many lines may still pass.
    left: Option<u64>,
    /// An incomplete line; only with a pattern.
    begun: Vec<u8>,
    /// What it is to be shown with.
    begun_stamp: String,
    /// Whether the last byte that came was not the end of a line.
    in_line: bool,
    /// Whether the last byte that was shown was not.
    shown_in_line: bool,
}

/// A longer line is looked at in pieces of this size: one without an end must not fill the memory.
const LONGEST: usize = 1 << 20;

impl LineFilter {
    pub(crate) fn new(pattern: Option<Regex>, most: Option<u64>, text: LineText) -> Self {
        Self { pattern, text, left: most, ..Self::default() }
    }

    /// What of these bytes is to be shown, as far as that is known; each line that begins in them
    /// behind `stamp`, at which no pattern looks.
    pub(crate) fn pass(&mut self, bytes: &[u8], stamp: &str) -> Vec<u8> {
        let mut shown = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !self.in_line {
                stamp.clone_into(&mut self.begun_stamp);
            }
            self.in_line = !part.ends_with(b"\n");
            if self.text != LineText::Bytes {
                let texts = self.plain.push(part);
                self.take_texts(&texts, &mut shown);
            }
            if self.text == LineText::ShowPlain {
                continue;
            }
            self.begun.extend_from_slice(part);
            if self.pattern.is_none() || !self.in_line || self.begun.len() >= LONGEST {
                self.take_line(&mut shown);
            }
        }
        shown
    }

    /// The last line, if it has no end and matches.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let mut shown = Vec::new();
        // The line has no newline to show.
        self.in_line = true;
        let texts = self.plain.end_line();
        self.take_texts(&texts, &mut shown);
        if !self.begun.is_empty() {
            self.take_line(&mut shown);
        }
        shown
    }

    /// Bytes are missing after those so far: their line ends here, and what follows starts
    /// another. What is to be shown of it, with the end that it lost.
    pub(crate) fn gap(&mut self) -> Vec<u8> {
        let mut shown = self.finish();
        if self.shown_in_line {
            self.show(b"\n", &mut shown);
        }
        self.in_line = false;
        shown
    }

    /// Nothing more can pass.
    pub(crate) fn is_full(&self) -> bool {
        self.left == Some(0)
    }

    /// Matches texts of the line that has begun, and shows them if text is shown.
    fn take_texts(&mut self, texts: &[PlainText], shown: &mut Vec<u8>) {
        for PlainText { text, known, kind } in texts {
            self.has_match |= self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(text));
            if self.text != LineText::ShowPlain || *kind == TextKind::Overwritten {
                continue;
            }
            if std::mem::take(&mut self.has_match) && !self.is_full() {
                shown.extend_from_slice(std::mem::take(&mut self.begun_stamp).as_bytes());
                let ends = *kind == TextKind::Whole && !self.in_line;
                let end: &[u8] = if ends { b"\n" } else { b"" };
                self.show(&[&text[*known..], end].concat(), shown);
            }
        }
    }

    /// The line that has begun, or a piece of it, if it matches.
    fn take_line(&mut self, shown: &mut Vec<u8>) {
        let line = std::mem::take(&mut self.begun);
        let has_match = std::mem::take(&mut self.has_match);
        if !self.is_full() && (has_match || self.matches(&line)) {
            // With the first piece of a line that is shown.
            shown.extend_from_slice(std::mem::take(&mut self.begun_stamp).as_bytes());
            self.show(&line, shown);
        }
    }

    /// Whether the bytes match, or the plain text of a line that has not ended.
    fn matches(&self, line: &[u8]) -> bool {
        let Some(pattern) = &self.pattern else { return true };
        match self.text {
            LineText::Bytes => pattern.is_match(line.strip_suffix(b"\n").unwrap_or(line)),
            LineText::MatchPlain | LineText::ShowPlain => {
                self.plain.so_far().is_some_and(|so_far| pattern.is_match(&so_far.text))
            }
        }
    }

    fn show(&mut self, line: &[u8], shown: &mut Vec<u8>) {
        shown.extend_from_slice(line);
        self.shown_in_line = !line.ends_with(b"\n");
        if let Some(left) = &mut self.left {
            *left -= u64::from(!self.shown_in_line);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same in pieces of any size.
    fn check(pattern: Option<&str>, most: Option<u64>, text: &str, want: &str) {
        for size in 1..=text.len().max(1) {
            for how in HOW {
                let shown = shown(pattern, most, how, text, size);
                assert_eq!(shown, want, "{size} bytes at once, {how:?}");
            }
        }
    }

    /// Without escape sequences, all ways are the same.
    const HOW: [LineText; 3] = [LineText::Bytes, LineText::MatchPlain, LineText::ShowPlain];

    fn shown(
        pattern: Option<&str>,
        most: Option<u64>,
        how: LineText,
        text: &str,
        size: usize,
    ) -> String {
        let pattern = pattern.map(|pattern| Regex::new(pattern).unwrap());
        let mut filter = LineFilter::new(pattern, most, how);
        let mut shown = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            shown.extend_from_slice(&filter.pass(piece, ""));
        }
        shown.extend(filter.finish());
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn plain_text_is_matched_and_shown_as_a_person_sees_it() {
        let log = "\x1b[31mer\x1b[0mror\r\nno\n10%\r99%\n\x1b]0;error\x07x";
        for size in 1..=log.len() {
            let check = |pattern: Option<&str>, how, want: &str| {
                assert_eq!(
                    shown(pattern, None, how, log, size),
                    want,
                    "{size} bytes at once, {how:?}"
                );
            };
            check(None, LineText::ShowPlain, "error\nno\n99%\nx");
            check(Some("^error$"), LineText::ShowPlain, "error\n");
            check(Some("^error$"), LineText::MatchPlain, "\x1b[31mer\x1b[0mror\r\n");
            check(Some("^99%$"), LineText::MatchPlain, "10%\r99%\n");
            check(Some("^10%$"), LineText::ShowPlain, "99%\n");
            check(Some("error"), LineText::Bytes, "\x1b]0;error\x07x");
            check(Some("^x$"), LineText::MatchPlain, "\x1b]0;error\x07x");
        }
    }

    #[test]
    fn a_long_plain_line_is_shown_once_and_does_not_fill_the_memory() {
        let long = format!("\x1b[1m{}\n", "x".repeat(200_000));
        for pattern in [None, Some("x")] {
            let text = shown(pattern, None, LineText::ShowPlain, &long, 70_000);
            assert!(text == long[4..], "{} bytes", text.len());
        }
    }

    #[test]
    fn lines_pass_that_match() {
        check(None, None, "a\nb", "a\nb");
        check(Some("a"), None, "ab\nb\n\nba", "ab\nba");
        check(Some("^$"), None, "a\n\nb\n", "\n");
        check(Some("a$"), None, "a\nab", "a\n");
    }

    #[test]
    fn no_more_lines_pass_than_are_wanted() {
        check(None, Some(2), "a\nb\nc\nd", "a\nb\n");
        check(None, Some(0), "a\nb", "");
        check(None, Some(9), "a\nb", "a\nb");
        check(Some("a|c"), Some(2), "a\nb\nc\na\n", "a\nc\n");
    }

    /// Each byte comes with a stamp of its own, the number of it.
    fn check_stamped(pattern: Option<&str>, most: Option<u64>, text: &str, want: &str) {
        let pattern = pattern.map(|pattern| Regex::new(pattern).unwrap());
        let mut filter = LineFilter::new(pattern, most, LineText::Bytes);
        let mut shown = Vec::new();
        for (number, byte) in text.bytes().enumerate() {
            shown.extend_from_slice(&filter.pass(&[byte], &format!("{number} ")));
        }
        shown.extend(filter.finish());
        assert_eq!(String::from_utf8_lossy(&shown), want);
    }

    #[test]
    fn a_line_has_the_stamp_of_its_first_byte() {
        check_stamped(None, None, "ab\n\nc", "0 ab\n3 \n4 c");
        check_stamped(None, Some(1), "ab\nc\n", "0 ab\n");
        check_stamped(Some("^b"), None, "ab\nb\n\nbc", "3 b\n6 bc");
        check_stamped(Some("[0-9]"), None, "ab\nc", "");
        let mut filter = LineFilter::new(None, None, LineText::Bytes);
        assert_eq!(&*filter.pass(b"a\nb\nc", "t "), b"t a\nt b\nt c");
        assert_eq!(&*filter.pass(b"d\ne", "u "), b"d\nu e");
    }

    /// The lines of each part that is there, behind the number of that part if they are stamped.
    fn lines_of(parts: &[String], pattern: &Regex, stamps: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            let stamp = if stamps { format!("{number} ") } else { String::new() };
            let last = number + 1 == parts.len();
            for line in part.split_inclusive('\n') {
                let text = line.strip_suffix('\n').unwrap_or(line);
                let end = if last && text == line { "" } else { "\n" };
                if pattern.is_match(text.as_bytes()) {
                    lines.push(format!("{stamp}{text}{end}"));
                }
            }
        }
        lines
    }

    fn shown_with_gaps(
        filter: &mut LineFilter,
        parts: &[String],
        size: usize,
        stamps: bool,
    ) -> String {
        let mut shown = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            let stamp = if stamps { format!("{number} ") } else { String::new() };
            if number > 0 {
                shown.extend(filter.gap());
            }
            for piece in part.as_bytes().chunks(size) {
                shown.extend_from_slice(&filter.pass(piece, &stamp));
            }
        }
        shown.extend(filter.finish());
        String::from_utf8(shown).unwrap()
    }

    proptest! {
        #[test]
        fn a_gap_ends_a_line_and_begins_another(
            parts in prop::collection::vec("[ab\n]{0,8}", 1..5),
            pattern in prop::sample::select(vec![None, Some("a"), Some("ab"), Some("^b"), Some("^$")]),
            most in prop::option::of(0..6_u64),
            size in 1..9_usize,
            stamps: bool,
            how in prop::sample::select(HOW.to_vec()),
        ) {
            let pattern = pattern.map(|pattern| Regex::new(pattern).unwrap());
            let wanted = pattern.clone().unwrap_or_else(|| Regex::new("").unwrap());
            let mut filter = LineFilter::new(pattern, most, how);
            let shown = shown_with_gaps(&mut filter, &parts, size, stamps);
            let most = most.map_or(usize::MAX, |most| most as usize);
            let lines = lines_of(&parts, &wanted, stamps);
            prop_assert_eq!(shown, lines.into_iter().take(most).collect::<String>());
        }
    }

    #[test]
    fn a_gap_in_a_line_that_was_shown_in_pieces_ends_it() {
        let mut filter = LineFilter::new(Some(Regex::new("x").unwrap()), None, LineText::Bytes);
        assert_eq!(filter.pass(&vec![b'x'; LONGEST], "").len(), LONGEST);
        assert_eq!(filter.gap(), b"\n");
        assert_eq!(filter.gap(), b"", "nothing has begun");
    }

    #[test]
    fn a_line_without_an_end_does_not_fill_the_memory() {
        let mut filter = LineFilter::new(Some(Regex::new("x").unwrap()), None, LineText::Bytes);
        let shown: usize = (0..5).map(|_| filter.pass(&vec![b'x'; LONGEST], "t ").len()).sum();
        assert_eq!((shown, filter.begun.len()), (2 + 5 * LONGEST, 0), "one line, one stamp");
    }
}
