//! Search by regex, line by line, from a cursor, with bounded work.
//!
//! A match lies within one line. A line ends after its newline, at the end of the log or at a
//! dropped range. A line longer than 64 KiB is searched in parts of 64 KiB, each preceded by the
//! last 8 KiB of the part before: a match of up to 8 KiB is found exactly once wherever it lies, a
//! longer one only if no border splits it. `\n` and a `\r` before it are not part of the text, so
//! `$` matches terminal output too. The search sees nothing before its cursor.
//!
//! A plain search looks at what a person sees of a line: the line as the text view shows it, without
//! escape sequences and with `\r` and `\b` applied. It also looks at each text of the line that was
//! overwritten from its first column on: a progress bar was there to be seen, and a [`Watcher`] must
//! not depend on when it looks. Of a line, the first overwritten text that matches and the last text
//! are reported. Characters that a cursor within the line has overwritten are not searched. A text
//! longer than 65,536 characters is searched in parts. Ranges are those of the log in every case.

mod pattern;
mod plain;
mod plain_lines;
mod searcher;
mod splitter;
mod texts;
mod watcher;

use std::{io, ops::Range};

use regex::bytes::Regex;

use super::Source;
use searcher::Searcher;

pub use pattern::{PatternError, compile};
pub use plain_lines::{PlainLines, PlainText};
pub use splitter::TextKind;
pub use watcher::{Seen, Watcher};

/// What a pattern is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The texts that a person sees.
    Plain,
    /// The bytes of the log.
    Raw,
}

/// What to search for, and the limits.
#[derive(Debug, Clone)]
pub struct Query {
    pub regex: Regex,
    pub reading: Reading,
    /// Where to start; within a line, only the rest of that line is searched.
    pub from: u64,
    /// How many lines of context to return before and after a matching line.
    pub before: u8,
    pub after: u8,
    /// How many matching lines to return.
    pub max_matches: usize,
    /// How much text to return. The first match is returned whatever its length; context that
    /// does not fit is left out.
    pub max_bytes: usize,
    /// How much to read. The line in which this limit is reached is searched to its end, and the
    /// context after a match is completed.
    pub max_scanned: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub matches: Vec<Match>,
    /// The dropped ranges met.
    pub dropped: Vec<Range<u64>>,
    /// Where to continue. A last line that may still grow is searched again unless it matched, and so
    /// are lines that may be context before the next match.
    pub next: u64,
    /// How many lines precede `next`, counted from the start of the search. Not known after a dropped
    /// range.
    pub next_number: Option<u64>,
    pub stopped: Stopped,
}

/// Why the search stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// At the end of the log.
    End,
    /// After `max_matches` matches, before the end of the log.
    Matches,
    /// After `max_bytes` of text.
    Bytes,
    /// After reading `max_scanned` bytes.
    Work,
}

/// A matching line. A line of context is returned once, if possible with the match before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// How many lines precede this one, counted from the start of the search. Not known after a
    /// dropped range.
    pub number: Option<u64>,
    pub line: FoundLine,
    /// The first 64 matches in the line.
    pub hits: Vec<Hit>,
    pub before: Vec<FoundLine>,
    pub after: Vec<FoundLine>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLine {
    /// The bytes of the line, newline included.
    pub range: Range<u64>,
    pub text: Vec<u8>,
}

/// A place where the regex matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// In the text of the line.
    pub text: Range<usize>,
    /// In the log.
    pub range: Range<u64>,
}

/// Searches until a limit is reached or the log ends.
pub fn search(source: &dyn Source, query: &Query) -> io::Result<Found> {
    Searcher::new(query).search(source)
}

#[cfg(test)]
mod tests {
    use super::{super::Slice, *};

    fn query(pattern: &str) -> Query {
        Query {
            regex: compile(pattern).unwrap(),
            reading: Reading::Plain,
            from: 0,
            before: 0,
            after: 0,
            max_matches: 100,
            max_bytes: 10_000,
            max_scanned: u64::MAX,
        }
    }

    /// Checks the lines found, the cursor and the reason.
    fn check(input: &[u8], query: &Query, want: (&[&str], u64, Stopped)) {
        let found = search(&Slice::new(input), query).unwrap();
        let text = |line: &Match| String::from_utf8(line.line.text.clone()).unwrap();
        let lines: Vec<String> = found.matches.iter().map(text).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!((lines.as_slice(), found.next, found.stopped), want);
    }

    #[test]
    fn each_limit_stops_the_search_and_says_where_to_continue() {
        let input = b"a1\nb\na2\nc\na3\n";
        check(input, &query("a"), (&["a1", "a2", "a3"], 13, Stopped::End));
        check(input, &Query { from: 5, ..query("a") }, (&["a2", "a3"], 13, Stopped::End));
        check(input, &Query { max_matches: 0, ..query("a") }, (&[], 0, Stopped::Matches));
        check(input, &Query { max_matches: 2, ..query("a") }, (&["a1", "a2"], 8, Stopped::Matches));
        check(
            input,
            &Query { max_matches: 3, ..query("a") },
            (&["a1", "a2", "a3"], 13, Stopped::End),
        );
        check(input, &Query { max_bytes: 5, ..query("a") }, (&["a1", "a2"], 10, Stopped::Bytes));
        check(input, &Query { max_bytes: 0, ..query("a") }, (&["a1"], 5, Stopped::Bytes));
        check(input, &Query { max_scanned: 4, ..query("a") }, (&["a1"], 5, Stopped::Work));
        check(input, &Query { max_scanned: 0, ..query("a") }, (&["a1"], 3, Stopped::Work));
    }

    #[test]
    fn a_last_line_that_may_still_grow_is_searched_again_unless_it_matched() {
        check(b"b\nrea", &query("ready"), (&[], 2, Stopped::End));
        check(b"b\nready", &query("ready"), (&["ready"], 7, Stopped::End));
        let first = Query { max_matches: 1, after: 2, ..query("ready") };
        check(b"b\nready", &first, (&["ready"], 7, Stopped::End));
        check(b"ready\nb", &first, (&["ready"], 6, Stopped::Matches));
        check(b"b\r\nready\r\n", &query("^b$|y$"), (&["b", "ready"], 10, Stopped::End));
    }

    #[test]
    fn the_number_at_the_cursor_is_that_of_the_line_that_the_cursor_is_in() {
        let number = |input: &[u8], limits: &Query| {
            let found = search(&Slice::new(input), limits).unwrap();
            (found.next, found.next_number)
        };
        let first = Query { max_matches: 1, after: 1, ..query("a") };
        assert_eq!(number(b"b\na\nb\nb\n", &first), (4, Some(2)));
        for limits in [query("a"), first] {
            assert_eq!(number(b"b\na", &limits), (3, Some(1)), "the line may still grow");
        }
        assert_eq!(number(b"b\nb", &query("a")), (2, Some(1)));
        assert_eq!(number(b"a\na\n", &Query { max_bytes: 0, ..query("a") }), (2, Some(1)));
    }

    #[test]
    fn context_that_does_not_fit_is_left_out() {
        let query = Query { before: 2, after: 2, max_bytes: 7, ..query("hit") };
        let found = search(&Slice::new(b"aaa\nbb\nhit\ncc\ndd\n"), &query).unwrap();
        let texts = |lines: &[FoundLine]| lines.iter().map(|line| line.text.clone()).collect();
        let context: (Vec<_>, Vec<_>) =
            (texts(&found.matches[0].before), texts(&found.matches[0].after));
        assert_eq!(context, (vec![b"bb".to_vec()], vec![b"cc".to_vec()]));
    }
}
