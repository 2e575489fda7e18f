//! `GET /v1/processes/{id}/output/lines`: where lines of the log begin.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Phase, Range};

/// Which lines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinesQuery {
    /// Start with the line that this many lines come before. The default is 0. A negative number counts
    /// from the end: -1 is the last of the lines that were counted.
    pub line: Option<i64>,
    /// Start with the line that has the byte at this offset of the log, instead.
    pub offset: Option<u64>,
    /// How many lines to show. The default is 1.
    #[schemars(range(min = 1, max = Self::MOST_LINES))]
    pub count: Option<u64>,
}

impl LinesQuery {
    /// The most lines in one answer.
    pub const MOST_LINES: u64 = 10_000;
}

/// Where lines begin, with the state of the process at the same instant. Late output is included. A dropped
/// range is one line: how many lines it had is not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinesAnswer {
    /// How many lines come before the first one shown; absent if none is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// The offset at which each line begins.
    pub offsets: Vec<u64>,
    /// The offset at which the last of them ends; absent if none is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<u64>,
    /// How many lines were counted so far.
    pub lines: u64,
    /// The offset up to which they were counted. If it is less than `total`, ask again: each request counts
    /// up to 256 MiB more.
    pub counted: u64,
    /// The ranges of the log that were dropped.
    pub dropped: Vec<Range>,
    /// The length of the log in bytes, including late output.
    pub total: u64,
    pub phase: Phase,
    /// Whether more output can come.
    pub log_open: bool,
}
