//! From a method and its parameters to a call. The shape is checked before the handshake, as in Codex.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::confined_files::FileRequest;
use super::launch::StartParams;
use super::process::Action;
use super::read::ReadParams;
use crate::doors::rpc::{Fault, base64};

/// A request whose parameters have the right shape.
#[derive(Debug)]
pub(super) enum Call {
    Initialize(InitializeParams),
    Info,
    Status,
    Start(Box<StartParams>),
    Read(ReadParams),
    File(Box<FileRequest>),
    /// About the process with this id.
    Control(String, Action),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InitializeParams {
    #[serde(rename = "clientName")]
    _client_name: String,
    pub(super) resume_session_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoParams {}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WriteParams {
    process_id: String,
    chunk: String,
    write_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SignalParams {
    process_id: String,
    #[serde(rename = "signal")]
    _signal: KnownSignal,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum KnownSignal {
    Interrupt,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TerminateParams {
    process_id: String,
}

impl Call {
    pub(super) fn parse(method: &str, params: Value) -> Result<Self, Fault> {
        Ok(match method {
            "initialize" => Self::Initialize(shape(params)?),
            "environment/info" => {
                no_params(params)?;
                Self::Info
            }
            "environment/status" => {
                no_params(params)?;
                Self::Status
            }
            "process/start" => Self::Start(Box::new(shape(params)?)),
            "process/read" => Self::Read(shape(params)?),
            "process/write" => shape::<WriteParams>(params)?.check()?,
            "process/signal" => {
                Self::Control(shape::<SignalParams>(params)?.process_id, Action::Interrupt)
            }
            "process/terminate" => {
                Self::Control(shape::<TerminateParams>(params)?.process_id, Action::Terminate)
            }
            "fs/getMetadata" | "fs/canonicalize" | "fs/readDirectory" | "fs/readFile"
            | "fs/writeFile" | "fs/createDirectory" | "fs/remove" => {
                Self::File(Box::new(FileRequest::parse(method, params)?))
            }
            other => {
                let message = format!("exec-server stub does not implement `{other}` yet");
                return Err(Fault::new(-32601, message));
            }
        })
    }

    /// The name of its family in errors about the handshake; `None` needs none.
    pub(super) fn family(&self) -> Option<&'static str> {
        match self {
            Self::Initialize(_) => None,
            Self::Info => Some("environment info"),
            Self::Status => Some("environment status"),
            Self::File(_) => Some("filesystem"),
            Self::Start(_) | Self::Read(_) | Self::Control(..) => Some("exec"),
        }
    }
}

impl WriteParams {
    fn check(self) -> Result<Call, Fault> {
        let bytes = base64::decode(&self.chunk)
            .map_err(|why| Fault::invalid_params(format!("invalid chunk: {why}")))?;
        if self.write_id.is_empty() {
            return Err(Fault::invalid_params("writeId must not be empty"));
        }
        Ok(Call::Control(self.process_id, Action::Write { bytes, write_id: self.write_id }))
    }
}

pub(super) fn shape<T: DeserializeOwned>(params: Value) -> Result<T, Fault> {
    serde_json::from_value(params).map_err(|error| Fault::invalid_params(error.to_string()))
}

/// They may be absent.
fn no_params(params: Value) -> Result<NoParams, Fault> {
    // A list would pass for a structure without members.
    match params {
        Value::Null => Ok(NoParams {}),
        Value::Array(_) => Err(Fault::invalid_params("invalid type: sequence, expected a map")),
        params => shape(params),
    }
}
