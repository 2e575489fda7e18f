//! `GET /v1/nodes` and `POST /v1/nodes/{node}/drain`: the machines of a fleet.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The nodes of a fleet, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodesAnswer {
    pub nodes: Vec<Node>,
}

/// A node as a gateway knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    pub name: String,
    pub state: NodeState,
    /// What it has said last; absent if this gateway has never heard it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<NodeReport>,
}

/// Whether a node is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    Present,
    /// Present, and it takes no more commands.
    Draining,
    /// It was not heard for a while: what it has is unknown.
    Silent,
    /// It was not heard for so long that it starts nothing for the fleet until it has joined again.
    Gone,
}

impl NodeState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Draining => "draining",
            Self::Silent => "silent",
            Self::Gone => "gone",
        }
    }
}

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NodeReport {
    /// Grows each time that it joins.
    pub epoch: u64,
    pub labels: BTreeMap<String, String>,
    /// How many more commands it takes.
    pub free_slots: u32,
    /// Runnable threads for each thousand processors.
    pub load: u32,
}

/// `POST /v1/nodes/{node}/drain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrainRequest {
    /// `false` ends it. The default is `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain: Option<bool>,
}
