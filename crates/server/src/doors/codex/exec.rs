//! `command/exec`: a command that is answered when it has ended.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use lastbyte_engine::Sandbox;
use serde::Deserialize;

use super::control::Size;
use super::door::Door;
use super::errors::Fault;
use super::initialize::Handshake;
use super::launch::{DEFAULT_CAP, DEFAULT_TIMEOUT, Program, Start, Streamed};
use super::methods::{Action, Api, Target};
use super::sandbox::{self, SandboxPolicy};

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

impl CommandExecParams {
    /// Every line may fail; the order is Codex's.
    pub(super) fn check(
        self,
        door: &Door,
        handshake: &Handshake,
    ) -> Result<(Target, Action), Fault> {
        if self.permission_profile.is_some() {
            handshake.require_experimental("command/exec.permissionProfile")?;
        }
        door.require_local_execution()?;
        self.check_members()?;
        let timeout = self.timeout()?;
        let policy = self.policy(&door.settings().cwd)?;
        let size = self.size.map(|size| size.check(Api::CommandExec)).transpose()?;
        let sandbox = sandbox::choose(policy, Api::CommandExec, door)?;
        let cwd = door.directory(self.cwd.as_deref().unwrap_or_default());
        sandbox::require_enforceable(&sandbox, &cwd, door)?;
        self.check_id()?;
        let (cap, streamed) = (self.cap(), self.streamed());
        let delivery = streamed.delivery();
        let env = self.env.unwrap_or_default();
        let program = Program { argv: self.command, cwd, env, streamed, size, timeout, sandbox };
        let start = Start { launch: program.launch(door), cap, delivery };
        Ok((Target::command(self.process_id), Action::Start(Box::new(start))))
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
        if self.streamed().is_any() && self.process_id.is_none() {
            let message = "command/exec tty or streaming requires a client-supplied processId";
            return Err(Fault::invalid_request(message));
        }
        Ok(())
    }

    fn timeout(&self) -> Result<Option<Duration>, Fault> {
        match self.timeout_ms {
            _ if self.disable_timeout => Ok(None),
            None => Ok(Some(DEFAULT_TIMEOUT)),
            Some(ms) => Api::CommandExec.timeout(ms).map(Some),
        }
    }

    /// `None` is the server's default.
    fn policy(&self, server: &Path) -> Result<Option<Sandbox>, Fault> {
        match (&self.sandbox_policy, &self.permission_profile) {
            (Some(policy), _) => policy.sandbox(server).map(Some),
            (None, Some(name)) => sandbox::profile(name).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn streamed(&self) -> Streamed {
        Streamed { tty: self.tty, stdin: self.stream_stdin, output: self.stream_stdout_stderr }
    }

    fn cap(&self) -> Option<u64> {
        (!self.disable_output_cap).then(|| self.output_bytes_cap.unwrap_or(DEFAULT_CAP))
    }
}
