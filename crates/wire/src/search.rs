//! `GET /v1/processes/{id}/output/search`: lines of the log that match.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Phase, Range, Stream};

/// What to search for, and how far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchQuery {
    /// A regular expression; a match lies within one line.
    pub pattern: String,
    /// Match the bytes of the log. The default is to match the text that a person sees: without
    /// escape sequences, and what `\r` overwrites is no longer part of the line.
    pub raw: Option<bool>,
    /// The cursor to start at: `next` of the previous search. The default is 0.
    pub from: Option<u64>,
    /// Only in this stream, if the streams are split.
    pub stream: Option<Stream>,
    /// Include late output: what surviving processes wrote after the ending.
    pub late: Option<bool>,
    /// How many lines to show before a matching line. The default is 0.
    pub before: Option<u8>,
    /// How many lines to show after a matching line. The default is 0.
    pub after: Option<u8>,
    /// How many matching lines to show. The default is 100.
    #[schemars(range(min = 1, max = Self::MOST_MATCHES))]
    pub max_matches: Option<u64>,
}

impl SearchQuery {
    /// The most matching lines in one answer.
    pub const MOST_MATCHES: u64 = 10_000;
}

/// What was found, with the state of the process at the same instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchAnswer {
    pub matches: Vec<SearchMatch>,
    /// Why the search stopped.
    pub stopped: SearchStopped,
    /// The cursor to continue from: before a last line that does not match but may still grow, or
    /// before lines that may be context of the next match.
    pub next: u64,
    /// How many lines there are between the start of the search and `next`: add it to each `number` of
    /// the search that continues there. Absent after a dropped range. Earlier versions of the server
    /// do not send this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_number: Option<u64>,
    /// The ranges that could not be searched because they were dropped.
    pub dropped: Vec<Range>,
    /// The length of the log in bytes, including late output.
    pub total: u64,
    pub phase: Phase,
    /// Whether more output can come.
    pub log_open: bool,
}

/// Why a search stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchStopped {
    /// The end of the log.
    End,
    /// `max_matches` lines were found before the end of the log.
    Matches,
    /// The answer has its largest size.
    Bytes,
    /// One search may read no more of the log.
    Work,
}

/// A matching line. A line that was overwritten can have two: the first text that matches, and the text
/// that it finally shows. Each line of context is shown once, after the previous match if possible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchMatch {
    /// How many lines there are between the start of the search and this line. Absent after a dropped
    /// range, because the lines in it are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    pub line: SearchLine,
    /// Where in the log the pattern matches: the first 64 matches in the line. Escape sequences
    /// between matching characters are part of the range.
    pub hits: Vec<Range>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<SearchLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<SearchLine>,
}

/// A line without its newline, as it was matched: plain or raw. Bytes that are not UTF-8 are shown as
/// U+FFFD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchLine {
    pub text: String,
    /// Its bytes in the log, including the newline.
    pub range: Range,
}
