//! `GET /v1/processes/{id}/output`: a view of the log at one instant.

pub(crate) mod lines;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Ending, Phase};

/// What to show of the log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputQuery {
    /// The default is `raw`.
    pub view: Option<View>,
    /// The cursor to start at; a negative one counts from the end. Not for `lines`.
    pub from: Option<i64>,
    #[schemars(range(min = 1))]
    pub max_bytes: Option<u64>,
    /// Only this stream, if the streams are split.
    pub stream: Option<Stream>,
    /// Include late output: what surviving processes wrote after the ending.
    pub late: Option<bool>,
    /// Wait up to this long for output past `from`, or until no more can come: until the ending, or
    /// with `late` until the log closes.
    pub wait_ms: Option<u64>,
    /// For `lines`: how many lines to show from the start.
    pub first: Option<u64>,
    /// For `lines`: how many lines to show from the end. The default is 100.
    pub last: Option<u64>,
    /// For `screen`: the offset of the log to show the screen at. The default is the end.
    pub at: Option<u64>,
    /// For `screen`: the height of the terminal. The default is the one of the process's terminal, else 24.
    #[schemars(range(min = 1, max = 500))]
    pub rows: Option<u16>,
    /// For `screen`: the width of the terminal. The default is the one of the process's terminal, else 80.
    #[schemars(range(min = 1, max = 500))]
    pub cols: Option<u16>,
    /// For `screen`: add the colours, and what brings another terminal to the same state.
    pub ansi: Option<bool>,
}

impl OutputQuery {
    /// The largest number of `rows` or `cols`.
    pub const MOST_ROWS_OR_COLS: u16 = 500;
}

/// A rendering of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum View {
    /// The bytes as they are.
    Raw,
    /// Text without escape sequences, with overwritten lines resolved and repeated lines folded.
    Text,
    /// The start and the end, and the range left out between them.
    HeadTail,
    Lines,
    /// What a terminal shows that has read the log.
    Screen,
}

/// One of two split streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    Stdout,
    Stderr,
}

/// A view of the log, with the state of the process at the same instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Output {
    /// Where the view starts.
    pub from: u64,
    /// The cursor to continue from.
    pub next: u64,
    /// The length of the log in bytes, including late output.
    pub total: u64,
    /// The ranges of the log that were dropped.
    pub dropped: Vec<Range>,
    pub phase: Phase,
    /// Whether more output can come.
    pub log_open: bool,
    /// Where the output ends and late output starts, once that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_len: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    pub content: Content,
}

/// The view. Bytes that are not UTF-8 are shown as U+FFFD, except in `raw`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "view", rename_all = "snake_case")]
pub enum Content {
    Raw {
        base64: String,
    },
    Text {
        lines: Vec<TextLine>,
    },
    /// If everything fits, it is all in `head`.
    HeadTail {
        head: String,
        /// The range between head and tail.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        omitted: Option<Range>,
        tail: String,
    },
    Lines {
        lines: Vec<Line>,
    },
    /// `from` is where the terminal was switched on: past 0 if the log is long or was dropped, and then modes that were
    /// set earlier are not known. `next` is the offset that it is shown at.
    Screen {
        screen: Screen,
    },
}

/// What a terminal shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Screen {
    pub rows: u16,
    pub cols: u16,
    /// The text of each row, without the spaces at its end.
    pub lines: Vec<String>,
    /// Absent while it is hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<ScreenCursor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether the program has switched to the other screen, as editors do.
    pub alternate: bool,
    /// With `ansi`: the rows with colours and other attributes as escape sequences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ansi_lines: Option<Vec<String>>,
    /// With `ansi`: what brings another terminal of this size to the same screen, text, cursor and modes as here at
    /// `ansi_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ansi_state: Option<String>,
    /// With `ansi`: where another terminal goes on with the log, which is before a sequence or character that has not
    /// ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ansi_at: Option<u64>,
}

/// Where the cursor is. The first row and column are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScreenCursor {
    pub row: u16,
    pub col: u16,
}

/// A line as text, and how often it was repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TextLine {
    pub text: String,
    /// The bytes it was made from.
    pub range: Range,
    /// The range to read if the text is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Range>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Fold>,
}

/// Repetitions of the line before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fold {
    pub count: u64,
    pub range: Range,
}

/// A line, without its newline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    pub text: String,
    /// Its bytes in the log, including the newline.
    pub range: Range,
    /// The part of the range that did not fit into the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Range>,
}

/// The bytes of the log from `start` up to, not with, `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    pub start: u64,
    pub end: u64,
}

/// Names of header fields. A raw answer has in its head what others have in JSON; its body is the
/// bytes from `FROM` up to `NEXT`.
pub mod head {
    /// In a request for events: the id of the last event seen.
    pub const LAST_EVENT_ID: &str = "last-event-id";
    pub const FROM: &str = "lastbyte-from";
    pub const NEXT: &str = "lastbyte-next";
    pub const TOTAL: &str = "lastbyte-total";
    /// Ranges as `start-end`, separated by commas; absent if nothing was dropped.
    pub const DROPPED: &str = "lastbyte-dropped";
    pub const PHASE: &str = "lastbyte-phase";
    /// `true` or `false`.
    pub const LOG_OPEN: &str = "lastbyte-log-open";
    pub const FINAL_LEN: &str = "lastbyte-final-len";
    /// The ending as JSON in ASCII.
    pub const ENDING: &str = "lastbyte-ending";
}
