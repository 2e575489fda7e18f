//! `GET /v1/events`: one ordered feed over all processes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Ending, TimeoutKind};

/// Which events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsQuery {
    /// Only events of processes of this session.
    pub session: Option<String>,
    /// Only events that name this chat of Coder's agent.
    pub chat: Option<String>,
    /// Only events after this one, for clients that cannot send the header `Last-Event-ID`.
    pub last_event_id: Option<String>,
}

/// Something that happened to a process. The id of the event resumes the feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// The process.
    pub process: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    pub at_unix_ns: u64,
    /// With `started`: the program and its arguments, if it was started with `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// With `started`: the shell command, if it was started with `shell`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    pub event: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EventKind {
    Started,
    /// It wrote its first byte.
    FirstOutput,
    TimedOut {
        which: TimeoutKind,
    },
    Ended {
        ending: Box<Ending>,
    },
    /// A command of these chats may have changed files: below these paths, or anywhere if there are none.
    WorkspaceTouched {
        chats: Vec<String>,
        paths: Vec<String>,
    },
    Forgotten,
}

/// Events between the last one seen and the next one are no longer kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {}

impl EventKind {
    /// The name of the event in the feed.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::FirstOutput => "first_output",
            Self::TimedOut { .. } => "timed_out",
            Self::Ended { .. } => "ended",
            Self::WorkspaceTouched { .. } => "workspace_touched",
            Self::Forgotten => "forgotten",
        }
    }
}
