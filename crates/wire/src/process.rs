//! A process as every answer shows it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Ending, Limits, LimitsEnforced, Range, Sandbox};

/// A process at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    pub id: String,
    /// The node of the fleet that has it. Only a gateway tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The process id of the leader.
    pub pid: i32,
    /// The program and its arguments, if it was started with `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
    /// The shell command, if it was started with `shell`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// Its working directory.
    pub cwd: String,
    pub streams: Streams,
    /// What it and all its children may do.
    pub sandbox: Sandbox,
    /// What it and all its children may use, with the server's own limits; absent without limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// How each of them is enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits_enforced: Option<LimitsEnforced>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    pub started_unix_ns: u64,
    /// When its timeout passed, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out_at_unix_ns: Option<u64>,
    pub phase: Phase,
    /// Who has its keyboard: nobody else can write then. Absent while every client may write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyboard: Option<Keyboard>,
    /// Input that may not have arrived at its terminal, and is not typed again: the server was killed
    /// while it typed it. Bytes past the accepted ones stand for the end of file. Absent if all arrived,
    /// and once the server has been started again after the process had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin_uncertain: Option<Range>,
    /// The length of the log in bytes, including late output.
    pub total: u64,
    /// The ranges of the log that were dropped.
    pub dropped: Vec<Range>,
    /// Whether more output can come; after the ending, late output.
    pub log_open: bool,
    /// The file on the server that has the output, dropped ranges as holes. Absent if little output
    /// of an ended process is kept without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// Whether all of this is in the journal on disk. If `false`, because the disk is full or the state
    /// directory is gone, it is lost when the server is killed. Absent if the server keeps no journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<bool>,
}

/// Who has the keyboard of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Keyboard {
    /// What the client calls itself.
    pub holder: String,
    pub since_unix_ns: u64,
    /// What it types is a secret: not shown, and not kept.
    pub secret: bool,
}

/// The state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Running,
    /// The leader has exited; its last bytes are being stored.
    Draining,
    /// Everything is stored, and there is an ending.
    Ended,
    /// The server was killed before the process ended, so nobody saw its end: it may still run. There
    /// is an ending, with the status `lost`.
    Lost,
}

impl Phase {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Ended => "ended",
            Self::Lost => "lost",
        }
    }

    /// Whether there is an ending, so that nothing but late output can come.
    pub fn has_ending(self) -> bool {
        matches!(self, Self::Ended | Self::Lost)
    }
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
