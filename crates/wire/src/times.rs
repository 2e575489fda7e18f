//! `GET /v1/processes/{id}/output/times`: when the bytes of the log came.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Phase, Stream};

/// Which bytes to show the times of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimesQuery {
    /// The cursor to start at: `next` of the previous answer. The default is 0.
    pub from: Option<u64>,
    /// The cursor to stop at. The default is the end of the output.
    pub to: Option<u64>,
    /// Start at the first byte that may have been written at this time or later, if that is after `from`.
    pub since_unix_ns: Option<u64>,
    /// Include late output: what surviving processes wrote after the ending.
    pub late: Option<bool>,
    /// How many stamps to show. The default is 1000, the most is 10000.
    #[schemars(range(min = 1, max = Self::MOST_STAMPS))]
    pub max_stamps: Option<u64>,
}

impl TimesQuery {
    /// The most stamps in one answer.
    pub const MOST_STAMPS: u64 = 10_000;
}

/// When the bytes from `from` to `next` were written, with the state of the process at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimesAnswer {
    /// The first byte of the answer: with `since_unix_ns`, the cursor to read from.
    pub from: u64,
    /// The cursor to continue from.
    pub next: u64,
    /// In order. Dropped bytes may have no stamp of their own.
    pub stamps: Vec<Stamp>,
    /// Bytes were written at the time of their stamp, or less than this later.
    pub resolution_ms: u64,
    /// The length of the log in bytes, including late output.
    pub total: u64,
    pub phase: Phase,
    /// Whether more output can come.
    pub log_open: bool,
}

/// When the bytes from this offset up to the next stamp were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stamp {
    pub offset: u64,
    /// In whole milliseconds.
    pub at_unix_ns: u64,
    /// Which stream wrote them; absent if the streams are not split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
}
