//! `process/start`: its parameters as a launch of the engine.

use std::collections::BTreeMap;
use std::time::Duration;

use lastbyte_engine::{
    BaseEnv, DrainRule, Launch, OnQuota, Sandbox, Stdin, StopPolicy, Streams, WindowSize,
};
use lastbyte_output::log::Quota;
use serde::Deserialize;
use serde::de::{Error, IgnoredAny};
use serde_json::Value;

use super::door::Door;
use super::env_policy::{self, EnvPolicy};
use super::file_uri::FileUri;
use super::sandbox::{SandboxContext, refused};
use crate::doors::rpc::Fault;
use crate::verbs::refusal::with_cause;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartParams {
    pub(super) process_id: String,
    argv: Vec<String>,
    cwd: FileUri,
    env_policy: Option<EnvPolicy>,
    env: BTreeMap<String, String>,
    tty: bool,
    #[serde(default)]
    pipe_stdin: bool,
    arg0: Option<String>,
    sandbox: Option<SandboxContext>,
    #[serde(default)]
    enforce_managed_network: bool,
    managed_network: Option<Value>,
    network_proxy: Option<Value>,
    /// The shell's state of an earlier command; without it a shell starts as it always does.
    #[serde(default, rename = "shellSnapshot")]
    _shell_snapshot: Option<IgnoredAny>,
    #[serde(default, rename = "metadata")]
    _metadata: Option<Metadata>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default, rename = "threadId", deserialize_with = "uuid")]
    _thread_id: (),
}

/// Of a terminal.
const SIZE: WindowSize = WindowSize { rows: 24, cols: 80 };
/// Kept of the output of one process. All of it can be read again.
const QUOTA_BYTES: u64 = 1 << 30;

impl StartParams {
    /// Everything that can be refused without a try.
    pub(super) fn launch(self, door: &Door) -> Result<Launch, Fault> {
        if self.argv.is_empty() {
            return Err(Fault::invalid_params("argv must not be empty"));
        }
        let sandbox = self.sandbox(door)?;
        let env = &door.settings.environment;
        let env = env_policy::variables(self.env_policy.as_ref(), env, self.env);
        let quota = Quota::new(QUOTA_BYTES).unwrap_or(Quota::DEFAULT);
        Ok(Launch {
            arg0: self.arg0.map(Into::into),
            cwd: Some(self.cwd.0),
            base_env: BaseEnv::Empty,
            env,
            stdin: if self.tty || self.pipe_stdin { Stdin::Open } else { Stdin::Closed },
            streams: if self.tty { Streams::Pty(SIZE) } else { Streams::Split },
            stop: StopPolicy::KILL,
            drain: if self.tty { DrainRule::default() } else { AT_ONCE },
            quota,
            // A client that reads slowly never makes the command wait.
            on_quota: OnQuota::Drop,
            sandbox,
            labels: BTreeMap::from([("door".into(), "exec-server".into())]),
            outlives_server: false,
            ..Launch::argv(self.argv)
        })
    }

    fn sandbox(&self, door: &Door) -> Result<Sandbox, Fault> {
        if self.enforce_managed_network
            || self.managed_network.is_some()
            || self.network_proxy.is_some()
        {
            return Err(refused("managed networks and proxies are not supported"));
        }
        let asked = self.sandbox.as_ref().map(SandboxContext::sandbox).transpose()?;
        let chosen = door.settings.sandboxing.choose(asked);
        chosen.map_err(|error| refused(&with_cause(&error)))
    }
}

/// `exited` is told at once, even if others hold the output open: `closed` waits for them. What the leader wrote
/// to a pipe is in it when the leader has exited; a terminal may need a moment.
const AT_ONCE: DrainRule =
    DrainRule { quiet_window: Duration::ZERO, limit: Duration::ZERO, holders: Duration::ZERO };

/// A thread's id, which nothing here needs.
fn uuid<'de, D: serde::Deserializer<'de>>(from: D) -> Result<(), D::Error> {
    let Some(text) = Option::<String>::deserialize(from)? else { return Ok(()) };
    let lengths = text.split('-').map(str::len);
    let is_uuid = lengths.eq([8, 4, 4, 4, 12])
        && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    is_uuid.then_some(()).ok_or_else(|| D::Error::custom(format!("invalid thread id: {text:?}")))
}
