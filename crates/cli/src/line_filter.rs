//! Of output that comes in pieces, the lines that somebody wants.

use std::borrow::Cow;

use regex::bytes::Regex;

/// Lines that match, up to a number of them. Without either it lets everything pass as it comes.
#[derive(Debug)]
pub(crate) struct LineFilter {
    pattern: Option<Regex>,
    /// How many lines may still pass.
    left: Option<u64>,
    /// The beginning of a line whose end has not come; only where there is a pattern.
    begun: Vec<u8>,
}

/// A longer line is looked at in pieces of this size: one without an end must not fill the memory.
const LONGEST: usize = 1 << 20;

impl LineFilter {
    pub(crate) fn new(pattern: Option<Regex>, most: Option<u64>) -> Self {
        Self { pattern, left: most, begun: Vec::new() }
    }

    /// What of these bytes is to be shown, as far as that is known.
    pub(crate) fn pass<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let matching = match self.pattern {
            None => Cow::Borrowed(bytes),
            Some(_) => Cow::Owned(self.matching(bytes)),
        };
        self.counted(matching)
    }

    /// The last line, if it has no end and matches.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let last = std::mem::take(&mut self.begun);
        match !last.is_empty() && self.matches(&last) {
            true => self.counted(Cow::Owned(last)).into_owned(),
            false => Vec::new(),
        }
    }

    /// Nothing more can pass.
    pub(crate) fn is_full(&self) -> bool {
        self.left == Some(0)
    }

    fn matching(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(part);
            if part.ends_with(b"\n") || self.begun.len() >= LONGEST {
                let line = std::mem::take(&mut self.begun);
                if self.matches(&line) {
                    shown.extend_from_slice(&line);
                }
            }
        }
        shown
    }

    fn matches(&self, line: &[u8]) -> bool {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
    }

    /// Up to the end of the last line that may pass.
    fn counted<'a>(&mut self, bytes: Cow<'a, [u8]>) -> Cow<'a, [u8]> {
        let Some(left) = &mut self.left else { return bytes };
        let mut end = 0;
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if *left == 0 {
                break;
            }
            end += line.len();
            *left -= u64::from(line.ends_with(b"\n"));
        }
        match bytes {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[..end]),
            Cow::Owned(mut bytes) => {
                bytes.truncate(end);
                Cow::Owned(bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same in pieces of any size.
    fn check(pattern: Option<&str>, most: Option<u64>, text: &str, want: &str) {
        for size in 1..=text.len().max(1) {
            let pattern = pattern.map(|pattern| Regex::new(pattern).unwrap());
            let mut filter = LineFilter::new(pattern, most);
            let mut shown = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                shown.extend_from_slice(&filter.pass(piece));
            }
            shown.extend(filter.finish());
            assert_eq!(String::from_utf8_lossy(&shown), want, "{size} bytes at once");
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

    #[test]
    fn a_line_without_an_end_does_not_fill_the_memory() {
        let mut filter = LineFilter::new(Some(Regex::new("x").unwrap()), None);
        let shown: usize = (0..5).map(|_| filter.pass(&vec![b'x'; LONGEST]).len()).sum();
        assert_eq!((shown, filter.begun.len()), (5 * LONGEST, 0));
    }
}
