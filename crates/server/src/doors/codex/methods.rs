//! From a method and its parameters to an action, checked in the order of Codex: the shape, the
//! handshake, the capabilities, and then whatever the method itself requires.

use lastbyte_engine::WindowSize;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::control::{
    self, CommandExecResizeParams, CommandExecTerminateParams, CommandExecWriteParams,
    ProcessKillParams, ProcessResizePtyParams, ProcessWriteStdinParams,
};
use super::door::Door;
use super::initialize::{Handshake, InitializeParams};
use super::jsonrpc::RpcRequest;
use super::launch::Start;
use super::start::{CommandExecParams, ProcessSpawnParams};
use crate::doors::rpc::Fault;

/// The command that a request is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) api: Api,
    /// Chosen by the client, and unique within its API. Only `command/exec` can do without, and then
    /// no request can reach the command.
    pub(super) id: Option<String>,
}

/// The two sets of methods, which do the same under different names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Api {
    /// `command/exec` and `command/exec/*`.
    CommandExec,
    /// `process/*`.
    Process,
}

/// The words in which they differ.
#[derive(Debug)]
pub(super) struct Names {
    /// Of a command, in error texts.
    pub(super) command: &'static str,
    pub(super) start_method: &'static str,
    pub(super) write_method: &'static str,
    pub(super) output_delta: &'static str,
    /// The member of notifications that has the id.
    pub(super) id_member: &'static str,
}

/// A request that passed all checks.
#[derive(Debug)]
pub(super) enum Call {
    /// The text is the answer.
    Initialize(Handshake, String),
    Command(Target, Action),
}

#[derive(Debug)]
pub(super) enum Action {
    Start(Box<Start>),
    Write { bytes: Vec<u8>, close: bool },
    Resize(WindowSize),
    Terminate,
}

/// All methods. Types are named as in Codex, since errors about their shape name them.
#[derive(Deserialize)]
#[serde(tag = "method", content = "params")]
enum Method {
    #[serde(rename = "initialize")]
    Initialize(InitializeParams),
    #[serde(rename = "command/exec")]
    Exec(Box<CommandExecParams>),
    #[serde(rename = "command/exec/write")]
    Write(CommandExecWriteParams),
    #[serde(rename = "command/exec/resize")]
    Resize(CommandExecResizeParams),
    #[serde(rename = "command/exec/terminate")]
    Terminate(CommandExecTerminateParams),
    #[serde(rename = "process/spawn")]
    Spawn(Box<ProcessSpawnParams>),
    #[serde(rename = "process/writeStdin")]
    WriteStdin(ProcessWriteStdinParams),
    #[serde(rename = "process/resizePty")]
    ResizePty(ProcessResizePtyParams),
    #[serde(rename = "process/kill")]
    Kill(ProcessKillParams),
}

impl Call {
    pub(super) fn parse(
        request: RpcRequest,
        door: &Door,
        handshake: Option<&Handshake>,
    ) -> Result<Self, Fault> {
        let RpcRequest { id, method: name, params } = request;
        let method = Method::parse(&name, params)?;
        let Some(handshake) = handshake else {
            let Method::Initialize(params) = method else {
                return Err(Fault::invalid_request("Not initialized"));
            };
            return params.check(door, &id);
        };
        if name.starts_with("process/") {
            handshake.require_experimental(&name)?;
        }
        let (target, action) = method.check(door, handshake)?;
        Ok(Self::Command(target, action))
    }
}

impl Method {
    fn parse(name: &str, params: Option<Value>) -> Result<Self, Fault> {
        let params = params.map(|params| ("params".to_owned(), params));
        let members = [("method".to_owned(), name.into())].into_iter().chain(params);
        let parsed = serde_json::from_value(Value::Object(members.collect::<Map<_, _>>()));
        parsed.map_err(|error| Fault::invalid_request(format!("Invalid request: {error}")))
    }

    fn check(self, door: &Door, handshake: &Handshake) -> Result<(Target, Action), Fault> {
        match self {
            Self::Initialize(_) => Err(Fault::invalid_request("Already initialized")),
            Self::Exec(params) => params.check(door, handshake),
            Self::Spawn(params) => params.check(door),
            Self::Write(params) => {
                let target = Target::command(Some(params.process_id));
                control::write(target, params.delta_base64, params.close_stdin)
            }
            Self::WriteStdin(params) => {
                let target = Target::process(params.process_handle);
                control::write(target, params.delta_base64, params.close_stdin)
            }
            Self::Resize(params) => {
                control::resize(Target::command(Some(params.process_id)), params.size)
            }
            Self::ResizePty(params) => {
                control::resize(Target::process(params.process_handle), params.size)
            }
            Self::Terminate(params) => {
                Ok((Target::command(Some(params.process_id)), Action::Terminate))
            }
            Self::Kill(params) => Ok((Target::process(params.process_handle), Action::Terminate)),
        }
    }
}

impl Api {
    pub(super) fn names(self) -> Names {
        match self {
            Self::CommandExec => Names {
                command: "command/exec",
                start_method: "command/exec",
                write_method: "command/exec/write",
                output_delta: "command/exec/outputDelta",
                id_member: "processId",
            },
            Self::Process => Names {
                command: "process",
                start_method: "process/spawn",
                write_method: "process/writeStdin",
                output_delta: "process/outputDelta",
                id_member: "processHandle",
            },
        }
    }
}

impl Target {
    pub(super) fn command(id: Option<String>) -> Self {
        Self { api: Api::CommandExec, id }
    }

    pub(super) fn process(handle: String) -> Self {
        Self { api: Api::Process, id: Some(handle) }
    }
}
