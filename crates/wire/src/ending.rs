//! The record of how a process went: four independent facts, because they combine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Range;

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ending {
    pub status: Status,
    pub cause: Cause,
    pub closing: Closing,
    pub kept: Kept,
    /// The length of the output proper; what follows in the log is late output.
    pub final_len: u64,
    pub times: Times,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The sandbox ended it, as far as a status can tell: a program that calls the kernel as another
    /// processor does is killed. Whatever else is refused is an error to the program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sandbox_denied: bool,
}

/// The leader's own status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Status {
    Exited {
        code: i32,
    },
    Signalled {
        signal: i32,
        name: String,
        core_dumped: bool,
    },
    /// Not known, and never guessed.
    Lost {
        why: String,
    },
}

/// Whose doing the end was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// Its own, or that of somebody outside.
    Own,
    /// `escalated` when the stop signal did not do and KILL followed.
    TimedOut {
        which: TimeoutKind,
        escalated: bool,
    },
    Stopped {
        verb: StopVerb,
        escalated: bool,
    },
}

/// Which clock ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TimeoutKind {
    Wall,
    Idle,
}

/// What stopped it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopVerb {
    Stop,
    /// The server, or the connection that it belonged to, went away.
    Close,
}

/// How the output came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Closing {
    /// Every writer closed it.
    Eof,
    /// Somebody still holds it open; absent holders are not known.
    Held {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holders: Option<Vec<Holder>>,
    },
}

/// A process that holds the output open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    pub pid: i32,
    pub name: String,
}

/// Whether every byte of the output can still be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kept {
    Whole,
    /// These ranges were dropped to stay within the quota.
    Dropped {
        dropped: Vec<Range>,
    },
    /// The disk did not take it from `at` on; the newest bytes are in memory.
    Failed {
        errno: i32,
        at: u64,
        dropped: Vec<Range>,
    },
}

/// `_unix_ns` since 1970, `_ns` by a clock that is never set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    pub started_unix_ns: u64,
    pub exited_unix_ns: u64,
    pub ended_unix_ns: u64,
    /// From the start to the leader's exit.
    pub ran_ns: u64,
    /// From the leader's exit to the ending.
    pub drained_ns: u64,
}

/// What the leader and the children it waited for have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub user_ns: u64,
    pub system_ns: u64,
    /// In bytes; only where it is known to be the command's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
}
