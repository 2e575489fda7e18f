//! A process as every answer shows it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Ending, Range, Sandbox};

/// One command from start to end; all of it is of one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    pub id: String,
    /// The leader's.
    pub pid: i32,
    /// The program and its arguments, if it was given so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The text for `sh -c`, if it was given so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The directory it was started in.
    pub cwd: String,
    pub streams: Streams,
    /// What it and all its children may do.
    pub sandbox: Sandbox,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    pub started_unix_ns: u64,
    /// When its time was over, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out_at_unix_ns: Option<u64>,
    pub phase: Phase,
    /// How many bytes the log has, late output included.
    pub total: u64,
    /// The ranges of the log that are gone.
    pub dropped: Vec<Range>,
    /// Whether more can come: after the ending, late output.
    pub log_open: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

/// Where in its life a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Running,
    /// The leader has exited; its last bytes are being stored.
    Draining,
    /// Complete: the ending has the length of the output.
    Ended,
}

/// How standard output and error reach the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Streams {
    Merged,
    Split,
    /// Through a terminal.
    Tty,
}
