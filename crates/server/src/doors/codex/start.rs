//! The two methods that start a command: `command/exec` is answered when it has ended,
//! `process/spawn` when it runs; a notification tells the end of the latter.

use std::collections::BTreeMap;
use std::path::Path;

use lastbyte_engine::Sandbox;
use serde::Deserialize;

use super::control::Size;
use super::door::Door;
use super::initialize::Handshake;
use super::launch::{CommandParams, DEFAULT_CAP};
use super::methods::{Action, Api, Target};
use super::sandbox::{self, AbsolutePath, SandboxPolicy};
use crate::doors::rpc::Fault;

const DEFAULT_TIMEOUT_MS: i64 = 10_000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "the flags of the protocol")]
pub(super) struct CommandExecParams {
    command: Vec<String>,
    process_id: Option<String>,
    #[serde(default)]
    tty: bool,
    #[serde(default)]
    stream_stdin: bool,
    #[serde(default)]
    stream_stdout_stderr: bool,
    output_bytes_cap: Option<u64>,
    #[serde(default)]
    disable_output_cap: bool,
    timeout_ms: Option<i64>,
    #[serde(default)]
    disable_timeout: bool,
    cwd: Option<String>,
    env: Option<BTreeMap<String, Option<String>>>,
    size: Option<Size>,
    sandbox_policy: Option<SandboxPolicy>,
    permission_profile: Option<String>,
}

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
    /// `null` means no cap, as for the next one.
    #[serde(default = "default_cap")]
    output_bytes_cap: Option<u64>,
    #[serde(default = "default_timeout_ms")]
    timeout_ms: Option<i64>,
    env: Option<BTreeMap<String, Option<String>>>,
    size: Option<Size>,
}

fn default_cap() -> Option<u64> {
    Some(DEFAULT_CAP)
}

fn default_timeout_ms() -> Option<i64> {
    Some(DEFAULT_TIMEOUT_MS)
}

impl CommandExecParams {
    /// Every line may fail; the order is Codex's.
    pub(super) fn check(
        self,
        door: &Door,
        handshake: &Handshake,
    ) -> Result<(Target, Action), Fault> {
        let api = Api::CommandExec;
        if self.permission_profile.is_some() {
            handshake.require_experimental("command/exec.permissionProfile")?;
        }
        door.require_local_execution()?;
        self.check_members()?;
        let timeout_ms = self.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
        let timeout = api.timeout((!self.disable_timeout).then_some(timeout_ms))?;
        let policy = self.policy(&door.settings.cwd)?;
        let size = self.size.map(|size| size.check(api)).transpose()?;
        let sandbox = sandbox::choose(policy, api, door)?;
        let cwd = door.directory(self.cwd.as_deref().unwrap_or_default());
        // Before the check that follows. If this changes until the start, the start fails.
        let enforceable = door.engine.check_sandbox(&sandbox, &cwd);
        enforceable.map_err(|error| api.not_sandboxed(&error))?;
        self.check_id()?;
        let cap = self.output_bytes_cap.unwrap_or(DEFAULT_CAP);
        let params = CommandParams {
            argv: self.command,
            cwd,
            env: self.env.unwrap_or_default(),
            tty: self.tty,
            stream_stdin: self.stream_stdin,
            stream_output: self.stream_stdout_stderr,
            cap: (!self.disable_output_cap).then_some(cap),
            size,
            timeout,
            sandbox,
        };
        Ok((Target::command(self.process_id), params.start(door)))
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
            return Err(Api::CommandExec.size_requires_tty());
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
        let needs_id = self.tty || self.stream_stdin || self.stream_stdout_stderr;
        if needs_id && self.process_id.is_none() {
            let message = "command/exec tty or streaming requires a client-supplied processId";
            return Err(Fault::invalid_request(message));
        }
        Ok(())
    }

    /// `None` is the server's default.
    fn policy(&self, server: &Path) -> Result<Option<Sandbox>, Fault> {
        match (&self.sandbox_policy, &self.permission_profile) {
            (Some(policy), _) => policy.sandbox(server).map(Some),
            (None, Some(name)) => sandbox::profile(name).map(Some),
            (None, None) => Ok(None),
        }
    }
}

impl ProcessSpawnParams {
    /// Every line may fail; the order is Codex's.
    pub(super) fn check(self, door: &Door) -> Result<(Target, Action), Fault> {
        let api = Api::Process;
        door.require_local_execution()?;
        if self.command.is_empty() {
            return Err(Fault::invalid_request("command must not be empty"));
        }
        if self.process_handle.is_empty() {
            return Err(Fault::invalid_request("processHandle must not be empty"));
        }
        if self.size.is_some() && !self.tty {
            return Err(api.size_requires_tty());
        }
        let params = CommandParams {
            timeout: api.timeout(self.timeout_ms)?,
            size: self.size.map(|size| size.check(api)).transpose()?,
            // Codex has no policy here; a server that has a default means it for every command.
            sandbox: sandbox::choose(None, api, door)?,
            argv: self.command,
            cwd: self.cwd.0,
            env: self.env.unwrap_or_default(),
            tty: self.tty,
            stream_stdin: self.stream_stdin,
            stream_output: self.stream_stdout_stderr,
            cap: self.output_bytes_cap,
        };
        Ok((Target::process(self.process_handle), params.start(door)))
    }
}
