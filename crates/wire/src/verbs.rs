//! The small verbs: write, signal, stop, resize, forget, upgrade, and the server's health.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::StopPolicy;
use crate::object::object_or_null;

/// `POST …/stdin`, beside the bytes in the body.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteQuery {
    /// The offset of the bytes in the input: bytes accepted before are not written again.
    pub offset: Option<u64>,
    /// Keys to type after the bytes, separated by commas: `C-c`, `Enter,Up`. A key is a character or a
    /// name, with modifiers before it: `C-` (control), `M-` (meta, alt), `S-` (shift).
    pub keys: Option<String>,
    /// Close standard input after the bytes and keys.
    pub close: Option<bool>,
}

/// The bytes were queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteAnswer {
    /// How many bytes have been accepted in total: the offset of the next write.
    pub accepted: u64,
}

/// `POST …/signal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalRequest {
    /// A name like `INT` or `SIGINT`, or a number.
    pub signal: String,
}

/// Which processes a signal reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignalAnswer {
    pub delivered: Delivered,
}

/// Which processes a signal reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "to", rename_all = "snake_case")]
pub enum Delivered {
    /// The leader and its group.
    Group,
    /// The remaining members of the group, after the leader has exited.
    Survivors {
        count: u64,
    },
    Nobody,
}

/// `POST …/stop`, with a policy to use instead of the one of the start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StopRequest {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub stop: Option<StopPolicy>,
}

/// The result of stopping a process with its tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopProof {
    /// The processes that were sent a signal.
    pub signalled: Vec<i32>,
    /// The ones of them that have exited; zombies count as exited.
    pub gone: Vec<i32>,
    /// The processes that are alive, or may be.
    pub left: Vec<i32>,
    /// The ones of `left` that may belong to another command, so they were not signalled. They are
    /// stopped when the server ends.
    #[serde(default)]
    pub unattributed: Vec<i32>,
    /// The name of each process above, by its pid, read before it ended. A process that exited too
    /// early to be read has none.
    #[serde(default)]
    pub names: BTreeMap<i32, String>,
    pub reach: Reach,
    /// Whether it is proved that nothing is left: the cgroup is empty, and the server knows to which
    /// command each of its descendants belongs. `false` with an empty `left` means that a search found
    /// nothing.
    #[serde(default)]
    pub proved: bool,
}

/// How the processes of a tree are found, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// By a cgroup of its own.
    Leaf,
    /// By looking through all processes.
    Scan,
    /// Only the process group of the leader.
    Group,
}

/// A live process of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Survivor {
    pub pid: i32,
    pub name: String,
    /// It may belong to another command.
    #[serde(default)]
    pub unattributed: bool,
}

/// `POST …/resize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ResizeRequest {
    #[schemars(range(min = 1))]
    pub rows: u16,
    #[schemars(range(min = 1))]
    pub cols: u16,
}

/// `DELETE /v1/processes/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetQuery {
    /// Stop it first, with its whole tree.
    pub stop: Option<bool>,
}

/// `POST /v1/upgrade`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpgradeRequest {
    /// The absolute path of the program that the server is to run, on the server's machine.
    pub binary: String,
}

/// What a server that agreed to an upgrade is about to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpgradeAnswer {
    /// The version that has answered.
    pub from: String,
    /// The version that answers next, unless it fails to start.
    pub to: String,
    /// Of the worker that has answered. The upgrade is over when `/healthz` has another; it has
    /// failed if `restarts` has grown as well.
    pub worker_pid: u32,
}

/// `GET /v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Root {
    pub name: String,
    pub version: String,
}

/// `GET /healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    pub version: String,
    /// Of the process to signal or to wait for: the keeper, if there is one.
    pub pid: u32,
    pub started_unix_ns: u64,
    /// Of the session, for a token of one; absent without a token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Of these, those that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<u64>,
    pub reach: Reach,
    /// Earlier versions of the server send neither this nor `journal`.
    #[serde(default)]
    pub status: HealthStatus,
    #[serde(default)]
    pub journal: JournalHealth,
    /// Absent from a server without a keeper, or whose keeper has died: a crash loses all its
    /// running commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper: Option<KeeperHealth>,
    /// Earlier versions of the server do not send this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
}

/// How long, how many and how much of its ended processes a server keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Retention {
    /// Nothing is forgotten sooner after its ending, unless there are more than `processes`, or the
    /// output of all processes takes more than twice `output_bytes`.
    pub at_least_ms: u64,
    /// Everything is forgotten after this time.
    pub at_most_ms: u64,
    /// Ended processes of each session.
    pub per_session: u64,
    /// Ended processes of all sessions together.
    pub processes: u64,
    /// Disk space of the output of ended processes.
    pub output_bytes: u64,
}

/// The keeper of a server, which starts another worker when one crashes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeeperHealth {
    pub pid: u32,
    /// Of the process that does the work.
    pub worker_pid: u32,
    pub worker_started_unix_ns: u64,
    /// How many workers crashed.
    pub restarts: u32,
    /// How the last one crashed, as the end of a sentence: `was killed by SIGKILL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_crash: Option<String>,
}

/// Whether the server works fully.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HealthStatus {
    #[default]
    Ok,
    /// Commands run, but there is a problem: see `journal`.
    Degraded,
}

/// Whether all records are on disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JournalHealth {
    /// The server keeps no journal.
    #[default]
    Off,
    /// Everything is on disk.
    Ok,
    /// Records are waiting in memory, and are lost if the server is killed.
    Waiting {
        /// What is wrong with the disk or the state directory.
        why: String,
        bytes: u64,
    },
}
