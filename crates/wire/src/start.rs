//! `POST /v1/processes`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::object::object_or_null;
use crate::{Limits, Met, Output, Process, Sandbox, Secrets, View, Wait};

/// What to run: exactly one of `command` and `shell`. Everything else is optional.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
// Not by `oneOf`: client generators make two types of it that lack all other fields.
#[schemars(extend("if" = has("command", "array"), "then" = lacks("shell"), "else" = has("shell", "string")))]
pub struct StartRequest {
    /// The program and its arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub command: Option<Vec<String>>,
    /// A shell command, run by `sh -c`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The directory to run it in, as an absolute path. The default is the server's `--workdir` if
    /// that exists, else the home directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^/"))]
    pub cwd: Option<String>,
    /// Changes to the server's environment: a string sets a variable, null removes it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, Option<String>>,
    /// Secret variables, by name; none may be in `env`. They are in the command's environment and nowhere
    /// else: wherever a value appears in the output, `***NAME***` is stored instead.
    #[serde(skip_serializing_if = "Secrets::is_empty")]
    #[schemars(extend("maxProperties" = Self::MOST_SECRETS))]
    pub secrets: Secrets,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Stdin>,
    /// Run it on a terminal of this size.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub tty: Option<Tty>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<StreamsAsked>,
    /// Stop it after this long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Stop it when it has written nothing for this long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// What to do when a timeout passes. The default is `stop`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_timeout: Option<OnTimeout>,
    /// What to do when no client is connected to it any more. The default is `keep`, or `stop` if
    /// `disconnect_timeout_ms` is given. A client is
    /// connected while a connection is open over which it started the process or asked about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_disconnect: Option<OnDisconnect>,
    /// How long after the last client has gone it is stopped. The default is 30000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disconnect_timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub stop: Option<StopPolicy>,
    /// How many bytes of its output to keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = Self::LEAST_QUOTA))]
    pub quota_bytes: Option<u64>,
    /// What it may do. The default is the server's `--default-sandbox`.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub sandbox: Option<Sandbox>,
    /// What it and everything it starts may use.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub limits: Option<Limits>,
    /// The session it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = Self::LONGEST_NAME))]
    pub session: Option<String>,
    /// A second start with the same key and the same command finds the same process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = Self::LONGEST_NAME))]
    pub key: Option<String>,
    /// Where a gateway starts it. The default is the node with the most room.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub on: Option<Place>,
    /// For a gateway: if the node that has the key is gone, start it on another one. It may then run twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<bool>,
    /// A name for it, which every request takes instead of its id. No other running process has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = Self::NAME_PATTERN), extend("not" = { "const": Self::NO_NAME }))]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = Self::MOST_LABELS))]
    pub labels: BTreeMap<String, String>,
    /// Wait for this before answering.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub wait: Option<Wait>,
    /// How to show the output after the wait. The default is `head_tail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub view: Option<View>,
    /// How many bytes of the output to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_bytes: Option<u64>,
}

/// A node of a fleet: the one with this name, or one that has all of these labels.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Place {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Requires a field.
fn has(field: &str, kind: &str) -> Value {
    json!({ "required": [field], "properties": { field: { "type": kind } } })
}

fn lacks(field: &str) -> Value {
    json!({ "properties": { field: { "type": "null" } } })
}

impl StartRequest {
    /// The longest session or key, in bytes: they are kept with every event.
    pub const LONGEST_NAME: usize = 1024;
    pub const MOST_LABELS: usize = 64;
    pub const MOST_SECRETS: usize = 64;
    /// A letter, then letters, digits, `.`, `_` and `-`; 64 characters at most.
    pub const NAME_PATTERN: &str = "^[A-Za-z][A-Za-z0-9._-]{0,63}$";
    /// It stands for the newest process.
    pub const NO_NAME: &str = "last";
    /// How long after the last client has gone, unless the request says.
    pub const DISCONNECT_TIMEOUT_MS: u64 = 30_000;
    /// Less would keep neither the start nor the end of the output.
    pub const LEAST_QUOTA: u64 = 128 * 1024;
}

/// What the command reads: nothing, what is written to it later, or the given bytes.
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

/// One pipe for both streams, which keeps their order, or one for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StreamsAsked {
    Merged,
    Split,
}

/// What to do with a command whose timeout has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnTimeout {
    /// Stop it with its whole tree.
    Stop,
    /// Report it, and let it run.
    Background,
}

/// What to do with a command whose clients are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    Keep,
    /// Stop it with its whole tree; if it has ended, what is left of that.
    Stop,
}

/// How to stop a command: a signal, then KILL after the grace period.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StopPolicy {
    /// A name like `INT`, or a number. The default is TERM.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The default is 5000; 0 kills at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}

/// 201 if the process was started, 200 if the key had started it before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartAnswer {
    pub process: Process,
    /// The key had started it before.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub attached: bool,
    /// What could not be done as requested, though the command was started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Met>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
}
