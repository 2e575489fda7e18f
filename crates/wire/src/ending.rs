//! The record of how a process went: four independent facts, because they combine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{LimitKind, Range};

/// How a process ended. If nobody saw the end (status `lost`), what only a witness could tell is
/// absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ending {
    pub status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<Closing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Kept>,
    /// The length of the output; what follows in the log is late output. If nobody saw the end, the
    /// length of what was stored: there may have been more.
    pub final_len: u64,
    pub times: Times,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The sandbox killed it, as far as a status can tell: for system calls of another architecture.
    /// Everything else that a sandbox denies is an error to the program.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sandbox_denied: bool,
    /// The kernel killed a process of the tree because memory ran out. Known only where the tree has a
    /// cgroup that accounts memory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oom_killed: bool,
    /// The limits it came up against: the one that ended it, and `pids` if the kernel refused to start
    /// a process. The kernel does not tell of descriptors that it refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_hit: Vec<LimitKind>,
    /// How many times a secret was masked in the output. Absent if none was.
    #[serde(default, skip_serializing_if = "is_none")]
    pub masked: u64,
}

fn is_none(count: &u64) -> bool {
    *count == 0
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
    /// The status is unknown.
    Lost {
        why: String,
        /// The leader still runs, unwatched, with this process id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        running_pid: Option<i32>,
    },
}

/// What made the process end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// It ended by itself, or something outside the server ended it.
    Own,
    /// `escalated`: the stop signal did not end it, so KILL followed.
    TimedOut {
        which: TimeoutKind,
        escalated: bool,
    },
    Stopped {
        verb: StopVerb,
        escalated: bool,
    },
    /// It passed this limit, and the kernel or the server ended it.
    Limit {
        which: LimitKind,
        escalated: bool,
    },
}

/// Which timeout passed.
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
    /// The server shut down, or the connection it belonged to closed.
    Close,
    /// No client was connected to it any more, and it was started with `on_disconnect: stop`.
    Disconnect,
}

/// How the output ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Closing {
    /// Every writer closed it.
    Eof,
    /// Other processes still hold it open; `holders` is absent if they are not known.
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
    /// Writing to the disk failed at offset `at`; the newest bytes are in memory. If `errno` is 32
    /// (`EPIPE`), the output was cut there: its pipe was lost in a crash of the server.
    Failed {
        errno: i32,
        at: u64,
        dropped: Vec<Range>,
    },
}

/// `_unix_ns` is time since 1970; `_ns` is measured by a monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Times {
    pub started_unix_ns: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exited_unix_ns: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_unix_ns: Option<u64>,
    /// When the server found that nobody saw the end. Only then the others but the start are absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_unix_ns: Option<u64>,
    /// From the start to the leader's exit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_ns: Option<u64>,
    /// From the leader's exit to the ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained_ns: Option<u64>,
}

/// Resources used by the leader and the children it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub user_ns: u64,
    pub system_ns: u64,
    /// In bytes; absent if it cannot be told apart from that of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
}
