//! The small verbs: write, signal, stop, resize, forget, and the server's health.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::StopPolicy;
use crate::object::object_or_null;

/// `POST …/stdin`, beside the bytes in the body.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WriteQuery {
    /// Where in the input the bytes belong: what was accepted before is not written again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Close standard input behind them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close: Option<bool>,
}

/// The bytes are queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteAnswer {
    /// How many bytes were accepted in all: the offset of the next write.
    pub accepted: u64,
}

/// `POST …/signal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalRequest {
    /// A name like `INT` or `SIGINT`, or a number.
    pub signal: String,
}

/// Whom a signal reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SignalAnswer {
    pub delivered: Delivered,
}

/// Whom a signal reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "to", rename_all = "snake_case")]
pub enum Delivered {
    /// The leader and its group.
    Group,
    /// So many that are left of the group.
    Survivors {
        count: u64,
    },
    Nobody,
}

/// `POST …/stop`: another policy than the launch's, if any.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StopRequest {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub stop: Option<StopPolicy>,
}

/// What became of a tree that was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StopProof {
    /// Every process that was sent a signal.
    pub signalled: Vec<i32>,
    /// Those of them that are gone. A zombie is gone.
    pub gone: Vec<i32>,
    /// What still lives, or could not be shown to be gone.
    pub left: Vec<i32>,
    pub reach: Reach,
}

/// How a tree is found and ended, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reach {
    /// By a cgroup of its own.
    Leaf,
    /// By looking through all processes.
    Scan,
    /// The leader's group alone.
    Group,
}

/// A live process of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Survivor {
    pub pid: i32,
    pub name: String,
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
#[serde(deny_unknown_fields, default)]
pub struct ForgetQuery {
    /// Stop it first, if anything of it lives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<bool>,
}

/// `GET /v1`: who answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Root {
    pub name: String,
    pub version: String,
}

/// `GET /healthz`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    pub version: String,
    pub pid: u32,
    pub started_unix_ns: u64,
    pub processes: u64,
    pub running: u64,
    pub reach: Reach,
}
