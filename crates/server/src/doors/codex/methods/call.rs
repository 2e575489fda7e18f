//! From a method's name and parameters to what is to be done, in the order in which Codex
//! complains: the shape, the handshake, the capabilities, and then what the method itself finds.

use lastbyte_engine::WindowSize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::initialize::{self, Handshake};
use super::{exec, kill, resize, resize_pty, spawn, terminate, write, write_stdin};
use crate::doors::codex::door::Door;
use crate::doors::codex::envelope::RequestId;
use crate::doors::codex::family::Family;
use crate::doors::codex::fault::Fault;
use crate::doors::codex::launching::Wanted;

/// What a request wants, when nothing was found wrong with it.
#[derive(Debug)]
pub(in crate::doors::codex) enum Call {
    /// The handshake is made; the text is its answer.
    Initialize(Handshake, String),
    Begin(Box<Wanted>),
    Control(Target, Control),
}

/// Whom a request is about: an id that the client gave, unique in its family.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::doors::codex) enum Target {
    Command(String),
    Process(String),
}

/// What can be asked of a command that was begun.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::doors::codex) enum Control {
    Write { bytes: Vec<u8>, close: bool },
    Resize(WindowSize),
    Terminate,
}

/// A request of the right shape.
enum Shaped {
    Initialize(initialize::Params),
    Exec(Box<exec::Params>),
    Write(write::Params),
    Resize(resize::Params),
    Terminate(terminate::Params),
    Spawn(Box<spawn::Params>),
    WriteStdin(write_stdin::Params),
    ResizePty(resize_pty::Params),
    Kill(kill::Params),
}

const METHODS: [&str; 9] = [
    "initialize",
    "command/exec",
    "command/exec/write",
    "command/exec/resize",
    "command/exec/terminate",
    "process/spawn",
    "process/writeStdin",
    "process/resizePty",
    "process/kill",
];

impl Call {
    pub(in crate::doors::codex) fn judge(
        (method, params): (&str, Option<Value>),
        id: &RequestId,
        door: &Door,
        handshake: Option<&Handshake>,
    ) -> Result<Self, Fault> {
        let shaped = Shaped::parse(method, params)?;
        match (handshake, shaped) {
            (None, Shaped::Initialize(params)) => params.check(door, id),
            (Some(_), Shaped::Initialize(_)) => Err(Fault::invalid_request("Already initialized")),
            (None, _) => Err(Fault::invalid_request("Not initialized")),
            (Some(handshake), shaped) => {
                if method.starts_with("process/") {
                    handshake.require_experimental(method)?;
                }
                shaped.check(door, handshake)
            }
        }
    }
}

impl Shaped {
    fn parse(method: &str, params: Option<Value>) -> Result<Self, Fault> {
        match method {
            "initialize" => shape(params).map(Self::Initialize),
            "command/exec" => shape(params).map(Self::Exec),
            "command/exec/write" => shape(params).map(Self::Write),
            "command/exec/resize" => shape(params).map(Self::Resize),
            "command/exec/terminate" => shape(params).map(Self::Terminate),
            "process/spawn" => shape(params).map(Self::Spawn),
            "process/writeStdin" => shape(params).map(Self::WriteStdin),
            "process/resizePty" => shape(params).map(Self::ResizePty),
            "process/kill" => shape(params).map(Self::Kill),
            unknown => Err(not_a_request(format_args!(
                "unknown variant `{unknown}`, expected one of `{}`",
                METHODS.join("`, `")
            ))),
        }
    }

    fn check(self, door: &Door, handshake: &Handshake) -> Result<Call, Fault> {
        let (target, control) = match self {
            Self::Exec(params) => return params.check(door, handshake).map(Call::begin),
            Self::Spawn(params) => return params.check(door).map(Call::begin),
            Self::Initialize(_) => return Err(Fault::invalid_request("Already initialized")),
            Self::Write(params) => params.check()?,
            Self::Resize(params) => params.check()?,
            Self::Terminate(params) => params.into_control(),
            Self::WriteStdin(params) => params.check()?,
            Self::ResizePty(params) => params.check()?,
            Self::Kill(params) => params.into_control(),
        };
        Ok(Call::Control(target, control))
    }
}

impl Call {
    fn begin(wanted: Wanted) -> Self {
        Self::Begin(Box::new(wanted))
    }
}

impl Target {
    pub(in crate::doors::codex) fn family(&self) -> Family {
        match self {
            Self::Command(_) => Family::Command,
            Self::Process(_) => Family::Process,
        }
    }

    pub(in crate::doors::codex) fn id(&self) -> &str {
        match self {
            Self::Command(id) | Self::Process(id) => id,
        }
    }
}

fn shape<T: DeserializeOwned>(params: Option<Value>) -> Result<T, Fault> {
    let params = params.ok_or_else(|| not_a_request("missing field `params`"))?;
    serde_json::from_value(params).map_err(not_a_request)
}

fn not_a_request(why: impl std::fmt::Display) -> Fault {
    Fault::invalid_request(format!("Invalid request: {why}"))
}
