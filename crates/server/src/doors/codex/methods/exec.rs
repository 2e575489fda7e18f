//! `command/exec`: a command whose answer comes with its end.

use std::collections::BTreeMap;
use std::time::Duration;

use lastbyte_engine::WindowSize;
use serde::Deserialize;

use super::call::Target;
use super::initialize::Handshake;
use super::size::Size;
use crate::doors::codex::door::{Door, Streaming};
use crate::doors::codex::family::Family;
use crate::doors::codex::fault::Fault;
use crate::doors::codex::launching::{
    DEFAULT_CAP, DEFAULT_TIMEOUT, Output, Program, Streamed, Wanted,
};
use crate::doors::codex::sandbox::{self, SandboxPolicy};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the protocol")]
pub(super) struct Params {
    command: Vec<String>,
    #[serde(default)]
    process_id: Option<String>,
    #[serde(default)]
    tty: bool,
    #[serde(default)]
    stream_stdin: bool,
    #[serde(default)]
    stream_stdout_stderr: bool,
    #[serde(default)]
    output_bytes_cap: Option<u64>,
    #[serde(default)]
    disable_output_cap: bool,
    #[serde(default)]
    timeout_ms: Option<i64>,
    #[serde(default)]
    disable_timeout: bool,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    env: Option<BTreeMap<String, Option<String>>>,
    #[serde(default)]
    size: Option<Size>,
    #[serde(default)]
    sandbox_policy: Option<SandboxPolicy>,
    #[serde(default)]
    permission_profile: Option<String>,
}

impl Params {
    /// Each line is a complaint; the order is Codex's.
    pub(super) fn check(mut self, door: &Door, handshake: &Handshake) -> Result<Wanted, Fault> {
        if self.permission_profile.is_some() {
            handshake.require_experimental("command/exec.permissionProfile")?;
        }
        self.check_members()?;
        let timeout = self.timeout()?;
        let policy = self.policy()?;
        let size = self.size.map(|size| size.check(Family::Command)).transpose()?;
        let sandbox = sandbox::choose(policy.as_ref(), Family::Command, door)?;
        sandbox::require_enforceable(&sandbox, self.cwd.as_deref().unwrap_or_default(), door)?;
        self.check_id()?;
        self.check_back_end(door)?;
        let target = self.process_id.take().map(Target::Command);
        let output = Output { cap: self.cap(), delivery: self.streamed().delivery() };
        let mut launch = self.program(size, timeout).launch(door);
        launch.sandbox = sandbox;
        let control = door.settings().streaming;
        Ok(Wanted { family: Family::Command, target, launch, output, control })
    }

    fn check_members(&self) -> Result<(), Fault> {
        if self.command.is_empty() {
            return Err(Fault::invalid_request("command must not be empty"));
        }
        if self.permission_profile.is_some() && self.sandbox_policy.is_some() {
            let message = "`permissionProfile` cannot be combined with `sandboxPolicy`";
            return Err(Fault::invalid_request(message));
        }
        if self.size.is_some() && !self.tty {
            return Err(Family::Command.size_requires_tty());
        }
        if self.output_bytes_cap.is_some() && self.disable_output_cap {
            let message = "command/exec cannot set both outputBytesCap and disableOutputCap";
            return Err(Fault::invalid_params(message));
        }
        if self.timeout_ms.is_some() && self.disable_timeout {
            let message = "command/exec cannot set both timeoutMs and disableTimeout";
            return Err(Fault::invalid_params(message));
        }
        Ok(())
    }

    fn check_id(&self) -> Result<(), Fault> {
        if self.streamed().is_anything() && self.process_id.is_none() {
            let message = "command/exec tty or streaming requires a client-supplied processId";
            return Err(Fault::invalid_request(message));
        }
        Ok(())
    }

    /// What a back-end that gives only whole results cannot do.
    fn check_back_end(&self, door: &Door) -> Result<(), Fault> {
        let refused = match door.settings().streaming {
            Streaming::Supported => return Ok(()),
            Streaming::Unsupported if self.disable_timeout => {
                "disableTimeout is not supported with windows sandbox"
            }
            Streaming::Unsupported if self.streamed().is_anything() => {
                "streaming command/exec is not supported with windows sandbox"
            }
            Streaming::Unsupported if self.cap() != Some(DEFAULT_CAP) => {
                "custom outputBytesCap is not supported with windows sandbox"
            }
            Streaming::Unsupported => return Ok(()),
        };
        Err(Fault::invalid_request(refused))
    }

    fn timeout(&self) -> Result<Option<Duration>, Fault> {
        match self.timeout_ms {
            _ if self.disable_timeout => Ok(None),
            None => Ok(Some(DEFAULT_TIMEOUT)),
            Some(ms) => Family::Command.timeout(ms).map(Some),
        }
    }

    /// `None` leaves it to the server.
    fn policy(&self) -> Result<Option<SandboxPolicy>, Fault> {
        match (&self.sandbox_policy, &self.permission_profile) {
            (Some(policy), _) => policy.clone().check().map(Some),
            (None, Some(name)) => SandboxPolicy::of_profile(name).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn streamed(&self) -> Streamed {
        Streamed { tty: self.tty, stdin: self.stream_stdin, output: self.stream_stdout_stderr }
    }

    fn cap(&self) -> Option<u64> {
        match self.disable_output_cap {
            true => None,
            false => Some(self.output_bytes_cap.unwrap_or(DEFAULT_CAP)),
        }
    }

    fn program(self, size: Option<WindowSize>, timeout: Option<Duration>) -> Program {
        Program {
            streamed: self.streamed(),
            argv: self.command,
            cwd: self.cwd.unwrap_or_default().into(),
            env: self.env.unwrap_or_default(),
            size,
            timeout,
        }
    }
}
