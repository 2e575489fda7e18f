//! `GET /v1/processes/{id}/output`: a view of the log at one instant.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Ending, Phase, Range};

/// What to show of the log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutputQuery {
    /// `raw` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
    /// The cursor to begin at; negative counts from the end. Not for `lines`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_bytes: Option<u64>,
    /// Only this one of split streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<Stream>,
    /// Show late output too: what survivors wrote after the ending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<bool>,
    /// Wait so long for something past `from`, or until nothing more can come: until the ending,
    /// or with `late` until the log closes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// Of `lines`: so many from the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<u64>,
    /// Of `lines`: so many from the end; 100 unless something else is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
}

/// A rendering of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// The bytes themselves.
    Raw,
    /// Escape sequences removed, overwritten lines resolved, repeated ones folded.
    Text,
    /// The beginning and the end, with the range that was left out.
    HeadTail,
    Lines,
}

/// One of two split streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
}

/// A view and what it is a view of, all of one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Output {
    /// Where the view begins.
    pub from: u64,
    /// The cursor to go on from.
    pub next: u64,
    /// How many bytes the log has, late output included.
    pub total: u64,
    /// The ranges of the log that are gone.
    pub dropped: Vec<Range>,
    pub phase: Phase,
    /// Whether more can come.
    pub log_open: bool,
    /// Where the output proper ends and late output begins, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_len: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    pub content: Content,
}

/// The view itself. Bytes that are no UTF-8 are shown as U+FFFD in all but `raw`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "view", rename_all = "snake_case")]
pub enum Content {
    Raw {
        base64: String,
    },
    Text {
        lines: Vec<TextLine>,
    },
    /// If all of it fits, all of it is the head.
    HeadTail {
        head: String,
        /// What lies between head and tail.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        omitted: Option<Range>,
        tail: String,
    },
    Lines {
        lines: Vec<Line>,
    },
}

/// A line as text, and how often it came in a row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextLine {
    pub text: String,
    /// The bytes that it was made of.
    pub range: Range,
    /// The range to fetch if the text has not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Range>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Fold>,
}

/// Lines that read the same as the one before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fold {
    pub count: u64,
    pub range: Range,
}

/// A line, without its newline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    pub text: String,
    /// Where it lies, newline included.
    pub range: Range,
    /// The part of the range that is not in the text because it did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Range>,
}

/// Names of header fields. A raw answer says in its head what others say in JSON; its body is the
/// bytes from `FROM` up to `NEXT`.
pub mod head {
    /// Of a request for events: the id of the one that was seen last.
    pub const LAST_EVENT_ID: &str = "last-event-id";
    pub const FROM: &str = "lastbyte-from";
    pub const NEXT: &str = "lastbyte-next";
    pub const TOTAL: &str = "lastbyte-total";
    /// Ranges as `start-end`, separated by commas; absent when nothing is gone.
    pub const DROPPED: &str = "lastbyte-dropped";
    pub const PHASE: &str = "lastbyte-phase";
    /// `true` or `false`.
    pub const LOG_OPEN: &str = "lastbyte-log-open";
    pub const FINAL_LEN: &str = "lastbyte-final-len";
    /// The ending as JSON in ASCII.
    pub const ENDING: &str = "lastbyte-ending";
}
