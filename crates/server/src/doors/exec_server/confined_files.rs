//! An operation on files under a sandbox: done by a process that is held to it, so that the kernel decides.

use std::io::{self, Read, Write};

use lastbyte_engine::{BaseEnv, EnvEdit, Launch, Sandbox, Stdin, StopPolicy};
use lastbyte_output::log::Piece;
use serde::{Deserialize, Serialize};
use serde_json::{Value, from_slice, json, to_vec};

use super::door::Door;
use super::files::FileCall;
use super::methods::shape;
use super::sandbox::{SandboxContext, refused};
use crate::doors::rpc::Fault;
use crate::doors::rpc::kill_on_drop::KillOnDrop;
use crate::verbs::refusal::with_cause;

/// A request of `fs/*`. Its shape was checked.
#[derive(Debug)]
pub(super) struct FileRequest {
    call: FileCall,
    /// The same as JSON, for another process.
    message: Value,
    sandbox: Option<SandboxContext>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Outcome {
    #[serde(rename = "result")]
    Done(Value),
    #[serde(rename = "error")]
    Failed(Fault),
}

impl FileRequest {
    pub(super) fn parse(method: &str, mut params: Value) -> Result<Self, Fault> {
        let sandbox = params.get_mut("sandbox").map(Value::take).unwrap_or_default();
        let message = json!({ "method": method, "params": params });
        Ok(Self { call: shape(message.clone())?, message, sandbox: shape(sandbox)? })
    }

    pub(super) async fn perform(self, door: &Door) -> Result<Value, Fault> {
        let asked = self.sandbox.as_ref().map(SandboxContext::sandbox).transpose()?;
        // It makes no connections, whatever the policy says of them.
        let sandbox = asked.unwrap_or_else(|| door.settings.sandboxing.default.clone());
        if sandbox.confines() {
            return perform_confined(&self.message, sandbox, door).await;
        }
        let call = self.call;
        let done = tokio::task::spawn_blocking(move || call.perform()).await;
        done.unwrap_or_else(|_| Err(Fault::task_failed()))
    }
}

async fn perform_confined(message: &Value, sandbox: Sandbox, door: &Door) -> Result<Value, Fault> {
    if door.settings.file_helper.is_empty() {
        return Err(refused("this server has no helper for files"));
    }
    let message = to_vec(message).map_err(|error| Fault::internal(error.to_string()))?;
    let tmpdir = door.settings.environment.get("TMPDIR");
    let launch = Launch {
        cwd: Some("/".into()),
        base_env: BaseEnv::Empty,
        env: tmpdir.iter().map(|path| EnvEdit::Set("TMPDIR".into(), path.into())).collect(),
        stdin: Stdin::Given(message),
        stop: StopPolicy::KILL,
        sandbox,
        outlives_server: false,
        ..Launch::argv(door.settings.file_helper.clone())
    };
    let mut command = KillOnDrop::new(door.engine.clone(), launch);
    let process = command.started().await.map_err(|error| refused(&with_cause(&error)))?;
    process.ended().await;
    command.disarm();
    let snapshot = process.snapshot();
    let mut answer = vec![0; usize::try_from(snapshot.extent.len).unwrap_or(0)];
    let read = process.reader().read(&snapshot, 0, &mut answer);
    // If it cannot be forgotten yet, the engine does so later.
    _ = door.engine.forget(process.id());
    let outcome = match read {
        Ok(Piece::Bytes(count)) => from_slice(&answer[..count]).ok(),
        Ok(Piece::Dropped(_) | Piece::End) | Err(_) => None,
    };
    match outcome {
        Some(Outcome::Done(result)) => Ok(result),
        Some(Outcome::Failed(fault)) => Err(fault),
        None => Err(Fault::internal("the helper for files failed")),
    }
}

/// The helper: does what it reads, and writes what came of it.
pub fn perform_file_request(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut message = Vec::new();
    from.read_to_end(&mut message)?;
    let call: Result<FileCall, Fault> =
        from_slice(&message).map_err(|error| Fault::invalid_params(error.to_string()));
    let outcome = match call.and_then(FileCall::perform) {
        Ok(result) => Outcome::Done(result),
        Err(fault) => Outcome::Failed(fault),
    };
    to.write_all(&to_vec(&outcome)?)
}
