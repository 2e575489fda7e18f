//! Waiting for the first of several things.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Process, Range};

/// What to wait for: at least one condition, of which the first that holds is answered. When no more
/// output can come, the answer is `exit`, whatever the conditions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Wait {
    /// The process has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<bool>,
    /// The log has more bytes than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_past: Option<u64>,
    /// A line of the output matches this regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
    /// Match the pattern with the bytes of the log. The default is to match the text that a person
    /// sees, without escape sequences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw: Option<bool>,
    /// The cursor to search for the pattern from. The default is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The process or one of its descendants listens on this TCP port.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub port: Option<u16>,
    /// The process or one of its descendants waits for input: it is blocked reading the terminal or the
    /// pipe that is the command's standard input, nothing beside it runs, and no output comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs_input: Option<bool>,
    /// No hand-over of its keyboard to a person is open: the person is done or has left, or the link has
    /// expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hand_over: Option<bool>,
    /// It wrote nothing for this long, counted from the request or the last byte after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence_ms: Option<u64>,
    /// This much time has passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// Which condition held first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "met", rename_all = "snake_case")]
pub enum Met {
    Exit,
    OutputPast {
        total: u64,
    },
    /// Where the first match is, and its text.
    Pattern {
        range: Range,
        text: String,
    },
    Port {
        port: u16,
    },
    /// This process waits for input.
    NeedsInput {
        pid: i32,
        /// Of its program, at most 15 bytes.
        name: String,
        on: InputKind,
        /// It asks for a password: what is typed is not shown, and is a line.
        secret: bool,
    },
    HandOver {
        /// How the last hand-over ended; absent if there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        how: Option<HandOverEnd>,
    },
    Silence,
    Timeout {
        /// Only if `needs_input` was waited for: this process may have been waiting for input, but the
        /// server may not look at it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_unknown: Option<InputUnknown>,
    },
}

/// How a hand-over of a keyboard to a person ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HandOverEnd {
    /// The person gave the keyboard back.
    Done,
    /// The person left without giving it back.
    Left,
    /// Nobody used the link in time.
    Expired,
}

/// Where a process reads its input from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    Terminal,
    Pipe,
}

/// A process that the server may not look at, because it runs as another user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputUnknown {
    pub pid: i32,
    pub name: String,
}

/// The process as it was when the condition held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitAnswer {
    pub process: Process,
    pub wait: Met,
}
