//! `GET /v1/processes/{id}/output/search`: lines of the log that match.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Phase, Range, Stream};

/// What to look for, and how far to go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchQuery {
    /// A regular expression; a match lies within one line.
    pub pattern: String,
    /// The cursor to begin at: `next` of the search before. The beginning unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Only in this one of split streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// In late output too: what survivors wrote after the ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// How many lines to show before a line that matches; none unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<u8>,
    /// How many lines to show after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<u8>,
    /// How many lines that match to show: 100 unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = Self::MOST_MATCHES))]
    pub max_matches: Option<u64>,
}

impl SearchQuery {
    /// How many lines that match one answer shows at most.
    pub const MOST_MATCHES: u64 = 10_000;
}

/// What was found, all of one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchAnswer {
    pub matches: Vec<SearchMatch>,
    /// Why it went no further.
    pub stopped: SearchStopped,
    /// The cursor to go on from. A last line that did not match and may still grow lies behind it.
    pub next: u64,
    /// The ranges that could not be looked at, because they are gone.
    pub dropped: Vec<Range>,
    /// How many bytes the log has, late output included.
    pub total: u64,
    pub phase: Phase,
    /// Whether more can come.
    pub log_open: bool,
}

/// Why a search went no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchStopped {
    /// There is no more.
    End,
    /// So many were asked for.
    Matches,
    /// The answer is as long as one may be.
    Bytes,
    /// As much was read as one search may.
    Work,
}

/// A line that matches. A line of context is shown once, with the match before it if it can be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchMatch {
    /// How many lines lie between the start of the search and this one.
    pub number: u64,
    pub line: SearchLine,
    /// Where in the log the pattern matches: the first 64 places of the line.
    pub hits: Vec<Range>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<SearchLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<SearchLine>,
}

/// A line without its end. Bytes that are no UTF-8 are shown as U+FFFD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchLine {
    pub text: String,
    /// Where it lies, newline included.
    pub range: Range,
}
