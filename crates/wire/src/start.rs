//! `POST /v1/processes`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::object::object_or_null;
use crate::{Met, Output, Process, Sandbox, View, Wait};

/// What to run: exactly one of `command` and `shell`; all else has a default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("oneOf" = [only("command", "array", "shell"), only("shell", "string", "command")]))]
pub struct StartRequest {
    /// The program and its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
    /// Run by `sh -c`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// A string sets a variable, null takes it out of the server's environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Stdin>,
    /// Run it on a terminal of this size.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub tty: Option<Tty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamsAsked>,
    /// Stop it this long after its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Stop it when it has written nothing for this long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// What happens then; `stop` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub stop: Option<StopPolicy>,
    /// How much of its output is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = Self::LEAST_QUOTA))]
    pub quota_bytes: Option<u64>,
    /// What it may do; the server's default unless given.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub sandbox: Option<Sandbox>,
    /// The isolation boundary it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = Self::LONGEST_NAME))]
    pub session: Option<String>,
    /// A start with the same key and the same launch is the same process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = Self::LONGEST_NAME))]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = Self::MOST_LABELS))]
    pub labels: BTreeMap<String, String>,
    /// Wait for this before answering.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub wait: Option<Wait>,
    /// How the answer to a wait shows the output; `head_tail` unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
    /// How much of the output it shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_bytes: Option<u64>,
}

/// The one that is there, of this type, and the one that is not.
fn only(this: &str, kind: &str, other: &str) -> Value {
    let properties = json!({ this: { "type": kind }, other: { "type": "null" } });
    json!({ "required": [this], "properties": properties })
}

impl StartRequest {
    /// How long a name may be that is kept with every event, a session or a key, in bytes.
    pub const LONGEST_NAME: usize = 1024;
    pub const MOST_LABELS: usize = 64;
    /// Less would keep neither a beginning nor an end.
    pub const LEAST_QUOTA: u64 = 128 * 1024;
}

/// What the command reads: nothing, what is written to it later, or this and then its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    Closed,
    Open,
    Text(String),
    Base64(#[schemars(extend("contentEncoding" = "base64"))] String),
}

/// The size of a terminal in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tty {
    #[schemars(range(min = 1))]
    pub rows: u16,
    #[schemars(range(min = 1))]
    pub cols: u16,
}

/// One pipe for both streams, in exact order, or one for each, told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamsAsked {
    Merged,
    Split,
}

/// What happens to a command whose time is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// It is stopped with all it has started.
    Stop,
    /// That is told, and it runs on.
    Background,
}

/// How a command is stopped: a signal, then KILL after the grace.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StopPolicy {
    /// A name like `INT`, or a number. TERM unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// 5000 unless given; 0 kills at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

/// 201 with a process that was started, 200 with one that the key had started before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartAnswer {
    pub process: Process,
    /// It was there already, under the same key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attached: bool,
    /// What was not as asked, though it started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Met>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
}
