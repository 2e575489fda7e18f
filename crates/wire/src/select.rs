//! Requests about several processes: which ones, and what came of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::object::object_or_null;
use crate::{Delivered, Ending, Error, Met, Phase, Process, StopPolicy, StopProof, Wait};

/// Which processes: the ones with these ids, or all of them, of which only those count that meet every
/// other member. At least one member is needed, so that nobody selects everything by mistake.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Selection {
    /// Ids, or what stands for one: a name, `last`, or a unique prefix or suffix of an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = Self::MOST_IDS))]
    pub ids: Option<Vec<String>>,
    /// All processes; `false` is the same as absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub all: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// `name=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "="))]
    pub label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// Whether it failed: it ended with another exit code than 0, by a signal or a timeout, or nobody
    /// saw how. A process that was stopped has not failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<bool>,
}

impl Selection {
    /// As many as a server keeps.
    pub const MOST_IDS: usize = 10_000;
}

/// `POST /v1/stop`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StopManyRequest {
    /// Without `ids`, ended processes that have left nothing running are left out.
    pub select: Selection,
    /// Instead of the policy that each was started with.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub stop: Option<StopPolicy>,
}

/// `POST /v1/signal`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalManyRequest {
    /// Without `ids`, ended processes that have left nothing running are left out.
    pub select: Selection,
    /// A name like `INT` or `SIGINT`, or a number.
    pub signal: String,
}

/// `POST /v1/forget`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForgetManyRequest {
    pub select: Selection,
    /// Stop each first, with its whole tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<bool>,
}

/// What came of a request for each process that it selected: those with `ids` in their order, others
/// newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ManyAnswer {
    pub processes: Vec<Outcome>,
    /// The nodes of a fleet that did not answer: what came of it there is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_nodes: Option<Vec<String>>,
}

/// What came of it for one process. If it could not be done, `error` says why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    /// Its id, or what the request has in its place if there is no such process.
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How it had ended, if it had ended before the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_before: Option<Ending>,
    /// After a stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<StopProof>,
    /// After a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Delivered>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Error>,
}

/// `POST /v1/wait`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WaitManyRequest {
    pub select: Selection,
    /// What each is waited for: the first condition that holds.
    pub wait: Wait,
    /// Whether one process is enough. The default is to wait for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any: Option<bool>,
}

/// Each process that was selected: those with `ids` in their order, others newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitManyAnswer {
    pub processes: Vec<WaitOutcome>,
}

/// A process at the time of the answer, and the condition that it has met. With `any`, the others have
/// met none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitOutcome {
    pub process: Process,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Met>,
}
