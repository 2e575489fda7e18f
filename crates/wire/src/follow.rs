//! `GET /v1/processes/{id}/follow`: the output as it comes.
//!
//! Events are `output`, `dropped`, `ending`, `late` and `failed`. The id of an event is the cursor
//! behind it, with `-ended` after it once the ending was told; it resumes the stream there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Range, Stream};

/// Where to begin, and how far to go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FollowQuery {
    /// The cursor to begin at; negative counts from the end. The beginning unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// Go on after the ending, with what survivors write, until the log closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// Say when each piece came. Pieces are then cut where that changes, be it inside a character.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<bool>,
}

/// The data of `output` and of `late`: bytes of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FollowOutput {
    /// Where they lie in the log.
    pub range: Range,
    /// Which of split streams they are of; absent where streams are not told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// When they came, or up to a tenth of a second before that; absent unless asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_unix_ns: Option<u64>,
    pub content: Bytes,
}

/// Bytes: as they are where they are UTF-8, which then ends with a whole character.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bytes {
    Text(String),
    Base64(String),
}

/// The data of `dropped`: these bytes are gone, because the follower was slower than the quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FollowDropped {
    pub range: Range,
}

/// Names of the events.
pub mod follow_events {
    pub const OUTPUT: &str = "output";
    pub const DROPPED: &str = "dropped";
    /// Its data is the ending.
    pub const ENDING: &str = "ending";
    pub const LATE: &str = "late";
    /// The log cannot be read any more; its data is an error. The last event.
    pub const FAILED: &str = "failed";
}
