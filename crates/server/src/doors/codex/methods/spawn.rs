//! `process/spawn`: a command that is answered when it runs; its end is a notification.

use std::collections::BTreeMap;
use std::time::Duration;

use lastbyte_engine::WindowSize;
use serde::{Deserialize, Deserializer};

use super::call::Target;
use super::size::Size;
use crate::doors::codex::door::{Door, Streaming};
use crate::doors::codex::family::Family;
use crate::doors::codex::fault::Fault;
use crate::doors::codex::launching::{
    DEFAULT_CAP, DEFAULT_TIMEOUT, Output, Program, Streamed, Wanted,
};
use crate::doors::codex::sandbox::{self, AbsolutePath};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Params {
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
    #[serde(default)]
    env: Option<BTreeMap<String, Option<String>>>,
    #[serde(default)]
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

impl Params {
    /// Each line is a complaint; the order is Codex's.
    pub(super) fn check(self, door: &Door) -> Result<Wanted, Fault> {
        if self.command.is_empty() {
            return Err(Fault::invalid_request("command must not be empty"));
        }
        if self.process_handle.is_empty() {
            return Err(Fault::invalid_request("processHandle must not be empty"));
        }
        if self.size.is_some() && !self.tty {
            return Err(Family::Process.size_requires_tty());
        }
        let timeout = self.timeout()?;
        let size = self.size.map(|size| size.check(Family::Process)).transpose()?;
        let output = Output { cap: self.cap(), delivery: self.streamed().delivery() };
        let target = Some(Target::Process(self.process_handle.clone()));
        // Codex has no policy here; a server that has a default means it for every command.
        let sandbox = sandbox::choose(None, Family::Process, door)?;
        let mut launch = self.program(size, timeout).launch(door);
        launch.sandbox = sandbox;
        let control = Streaming::Supported;
        Ok(Wanted { family: Family::Process, target, launch, output, control })
    }

    fn timeout(&self) -> Result<Option<Duration>, Fault> {
        match self.timeout_ms {
            Limit::Default => Ok(Some(DEFAULT_TIMEOUT)),
            Limit::Off => Ok(None),
            Limit::Number(ms) => Family::Process.timeout(ms).map(Some),
        }
    }

    fn streamed(&self) -> Streamed {
        Streamed { tty: self.tty, stdin: self.stream_stdin, output: self.stream_stdout_stderr }
    }

    fn cap(&self) -> Option<u64> {
        match self.output_bytes_cap {
            Limit::Default => Some(DEFAULT_CAP),
            Limit::Off => None,
            Limit::Number(cap) => Some(cap),
        }
    }

    fn program(self, size: Option<WindowSize>, timeout: Option<Duration>) -> Program {
        Program {
            streamed: self.streamed(),
            argv: self.command,
            cwd: self.cwd.as_path().to_owned(),
            env: self.env.unwrap_or_default(),
            size,
            timeout,
        }
    }
}
