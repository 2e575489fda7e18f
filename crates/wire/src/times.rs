//! `GET /v1/processes/{id}/output/times`: when the bytes of the log came.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Phase, Stream};

/// Of which bytes to tell it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TimesQuery {
    /// The cursor to begin at: `next` of the answer before. The beginning unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The cursor to end at: the end of what there is unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Begin with the first byte that may have come at this time or later, if that is behind `from`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_unix_ns: Option<u64>,
    /// Of late output too: what survivors wrote after the ending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// How many stamps to show: 1000 unless given, at most 10000.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = Self::MOST_STAMPS))]
    pub max_stamps: Option<u64>,
}

impl TimesQuery {
    /// The most that one answer has.
    pub const MOST_STAMPS: u64 = 10_000;
}

/// When the bytes from `from` to `next` came, all of one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TimesAnswer {
    /// The first byte that this is about: the cursor to read from, for whoever asked since when.
    pub from: u64,
    /// The cursor to go on from.
    pub next: u64,
    /// In order. Bytes that are gone may have none of their own.
    pub stamps: Vec<Stamp>,
    /// Bytes came at the time of their stamp or less than this later.
    pub resolution_ms: u64,
    /// How many bytes the log has, late output included.
    pub total: u64,
    pub phase: Phase,
    /// Whether more can come.
    pub log_open: bool,
}

/// When the bytes from an offset on came, up to that of the next stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stamp {
    pub offset: u64,
    /// In whole milliseconds.
    pub at_unix_ns: u64,
    /// Which of split streams they are of; absent where streams are not told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
}
