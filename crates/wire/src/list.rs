//! `GET /v1/processes`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Phase, Process};

/// Which processes to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    pub phase: Option<Phase>,
    pub session: Option<String>,
    /// `name=value`.
    #[schemars(regex(pattern = "="))]
    pub label: Option<String>,
    pub name: Option<String>,
    /// Whether it failed: it ended with another exit code than 0, by a signal or a timeout, or nobody
    /// saw how. A process that was stopped has not failed.
    pub failed: Option<bool>,
    /// Only processes started before the one with this id: `next` of the previous page.
    #[schemars(extend("format" = "uuid"))]
    pub before: Option<String>,
    /// How many processes to list. The default is 100.
    #[schemars(range(min = 1, max = Self::MOST))]
    pub limit: Option<u64>,
    /// Also look for what ended processes left running, which takes a search: `survived`.
    pub survivors: Option<bool>,
}

impl ListQuery {
    /// The most processes on one page.
    pub const MOST: u64 = 1000;
}

/// A page of processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListAnswer {
    pub processes: Vec<Process>,
    /// `before` of the next page; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// The ids of ended processes on this page of which something still runs, if the query asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub survived: Option<Vec<String>>,
    /// The nodes of a fleet that did not answer: what they have is not listed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_nodes: Option<Vec<String>>,
}
