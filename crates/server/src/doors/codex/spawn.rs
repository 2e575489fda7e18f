//! `process/spawn`: a command that is answered when it runs; a notification tells its end.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::control::Size;
use super::door::Door;
use super::errors::Fault;
use super::launch::{DEFAULT_CAP, DEFAULT_TIMEOUT, Program, Start, Streamed};
use super::methods::{Action, Api, Target};
use super::sandbox::{self, AbsolutePath};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProcessSpawnParams {
    command: Vec<String>,
    process_handle: String,
    cwd: AbsolutePath,
    #[serde(default)]
    tty: bool,
    #[serde(default)]
    stream_stdin: bool,
    #[serde(default)]
    stream_stdout_stderr: bool,
    #[serde(default)]
    output_bytes_cap: Limit<u64>,
    #[serde(default)]
    timeout_ms: Limit<i64>,
    env: Option<BTreeMap<String, Option<String>>>,
    size: Option<Size>,
}

/// A member that means three things: left out, null, or a number.
#[derive(Debug, Clone, Copy, Default)]
enum Limit<T> {
    #[default]
    Default,
    Off,
    Number(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Limit<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Option::deserialize(from)?.map_or(Self::Off, Self::Number))
    }
}

impl ProcessSpawnParams {
    /// Every line may fail; the order is Codex's.
    pub(super) fn check(self, door: &Door) -> Result<(Target, Action), Fault> {
        door.require_local_execution()?;
        if self.command.is_empty() {
            return Err(Fault::invalid_request("command must not be empty"));
        }
        if self.process_handle.is_empty() {
            return Err(Fault::invalid_request("processHandle must not be empty"));
        }
        if self.size.is_some() && !self.tty {
            return Err(Api::Process.size_requires_tty());
        }
        let timeout = self.timeout()?;
        let size = self.size.map(|size| size.check(Api::Process)).transpose()?;
        // Codex has no policy here; a server that has a default means it for every command.
        let sandbox = sandbox::choose(None, Api::Process, door)?;
        let streamed =
            Streamed { tty: self.tty, stdin: self.stream_stdin, output: self.stream_stdout_stderr };
        let (cap, delivery) = (self.cap(), streamed.delivery());
        let (cwd, env) = (self.cwd.0, self.env.unwrap_or_default());
        let program = Program { argv: self.command, cwd, env, streamed, size, timeout, sandbox };
        let start = Start { launch: program.launch(door), cap, delivery };
        Ok((Target::process(self.process_handle), Action::Start(Box::new(start))))
    }

    fn timeout(&self) -> Result<Option<Duration>, Fault> {
        match self.timeout_ms {
            Limit::Default => Ok(Some(DEFAULT_TIMEOUT)),
            Limit::Off => Ok(None),
            Limit::Number(ms) => Api::Process.timeout(ms).map(Some),
        }
    }

    fn cap(&self) -> Option<u64> {
        match self.output_bytes_cap {
            Limit::Default => Some(DEFAULT_CAP),
            Limit::Off => None,
            Limit::Number(cap) => Some(cap),
        }
    }
}
