//! `GET /v1/processes/{id}/follow`: the output as it comes.
//!
//! Events are `output`, `dropped`, `ending`, `late` and `failed`. The id of an event is the cursor
//! behind it, with `-ended` after it once the ending was told; it resumes the stream there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Range, Stream};

/// Where to start, and when to stop.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FollowQuery {
    /// The cursor to start at; a negative one counts from the end. The default is 0.
    pub from: Option<i64>,
    /// Continue after the ending, with output of surviving processes, until the log closes.
    pub late: Option<bool>,
    /// Add the time of each piece of output. Pieces then end where the time changes, even inside a character.
    pub times: Option<bool>,
}

/// The data of `output` and of `late`: bytes of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FollowOutput {
    /// Where they lie in the log.
    pub range: Range,
    /// Which stream wrote them; absent if the streams are not split.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// When they were written, or up to a tenth of a second earlier; only with `times`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_unix_ns: Option<u64>,
    pub content: Bytes,
}

/// Bytes: as text if they are UTF-8, which then ends with a whole character, else as base64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bytes {
    Text(String),
    Base64(String),
}

/// The data of `dropped`: these bytes were dropped by the quota before the follower read them.
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
    /// The log can no longer be read; its data is an error. The last event.
    pub const FAILED: &str = "failed";
}
