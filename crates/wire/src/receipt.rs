//! `GET /v1/processes/{id}/receipt`: what was run, under which terms, how it ended, and the hash of its
//! output.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{OnTimeout, Process, Range, StopPolicy};

/// A process, the terms it runs under, and the hash of its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Receipt {
    pub process: Process,
    /// The variables that the start set or removed, by name. Their values are never kept.
    pub env_names: Vec<String>,
    /// The secret variables, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secret_names: Vec<String>,
    /// How its sandbox is enforced. Absent if the policy restricts nothing, or if an earlier version of
    /// the server started the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<Enforcement>,
    pub stop: StopPolicy,
    /// Absent if an earlier version of the server started the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ProcessLimits>,
    pub output_hash: OutputHash,
}

/// How long a process may run and how much of its output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessLimits {
    /// From its start; absent for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// From its last output; absent for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    pub on_timeout: OnTimeout,
    /// From when its last client has gone; absent if it is kept then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disconnect_timeout_ms: Option<u64>,
    pub quota_bytes: u64,
}

/// How the kernel enforces a sandbox policy. Each way includes Landlock and a filter of system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Enforcement {
    /// By read-only mounts.
    Mounts,
    /// By read-only mounts in a user namespace.
    UserMounts,
    /// By Landlock and the filter alone.
    Landlock,
}

/// The hash of the output, or why there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum OutputHash {
    /// The SHA-256 of the first `bytes` bytes of the log. This is all output up to the ending, in the
    /// order it arrived, of both streams, without late output.
    Sha256 {
        #[schemars(regex(pattern = "^[0-9a-f]{64}$"))]
        hex: String,
        bytes: u64,
    },
    /// The process has not ended.
    NotEnded,
    /// These ranges of the output were dropped.
    Dropped { dropped: Vec<Range> },
    /// Output may be missing at its end.
    Incomplete { why: String },
}
