//! Types of the API as values of the engine.

mod sandbox;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lastbyte_engine::{
    EnvEdit, Key, Launch, Name, OnDisconnect, OnTimeout, Program, Resources, Session, Signal,
    Stdin, StopPolicy, Streams, Timeouts, WindowSize,
};
use lastbyte_output::log::Quota;
use lastbyte_output::mask::Secret;
use lastbyte_output::views::search::Reading;
use lastbyte_wire as wire;
use lastbyte_wire::{Error, ErrorCode};

use crate::Sandboxing;

const LONGEST_NAME: usize = wire::StartRequest::LONGEST_NAME;
const MOST_LABELS: usize = wire::StartRequest::MOST_LABELS;
const MOST_SECRETS: usize = wire::StartRequest::MOST_SECRETS;
const LONGEST_PROCESS_NAME: usize = 64;
/// Of all labels together.
const LABEL_BYTES: usize = 16 << 10;

pub(crate) fn launch(
    request: &wire::StartRequest,
    sandboxing: &Sandboxing,
) -> Result<Launch, Error> {
    check_names(request)?;
    check_place(request)?;
    let sandbox = request.sandbox.as_ref().map(sandbox::sandbox).transpose()?;
    Ok(Launch {
        cwd: request.cwd.as_deref().map(directory).transpose()?,
        env: edits(&request.env),
        secrets: secrets(&request.secrets)?,
        stdin: stdin(request.stdin.as_ref())?,
        streams: streams(request)?,
        timeouts: Timeouts {
            wall: request.timeout_ms.map(Duration::from_millis),
            idle: request.idle_timeout_ms.map(Duration::from_millis),
        },
        on_timeout: match request.on_timeout {
            None | Some(wire::OnTimeout::Stop) => OnTimeout::Stop,
            Some(wire::OnTimeout::Background) => OnTimeout::Background,
        },
        on_disconnect: on_disconnect(request),
        stop: stop_policy(request.stop.as_ref(), StopPolicy::default())?,
        quota: quota(request.quota_bytes)?,
        sandbox: sandboxing.choose(sandbox)?,
        resources: request.limits.map(resources).unwrap_or_default(),
        session: request.session.clone().map(Session),
        key: request.key.clone().map(Key),
        name: request.name.as_deref().map(name).transpose()?,
        labels: request.labels.clone(),
        ..Launch::new(program(request)?)
    })
}

/// A time alone asks for a stop, too.
fn on_disconnect(request: &wire::StartRequest) -> OnDisconnect {
    let usual = wire::StartRequest::DISCONNECT_TIMEOUT_MS;
    match (request.on_disconnect, request.disconnect_timeout_ms) {
        (Some(wire::OnDisconnect::Keep), _) | (None, None) => OnDisconnect::Keep,
        (Some(wire::OnDisconnect::Stop) | None, after) => {
            OnDisconnect::Stop { after: Duration::from_millis(after.unwrap_or(usual)) }
        }
    }
}

/// Only a gateway chooses among machines, and keeps this from the node that it chooses.
fn check_place(request: &wire::StartRequest) -> Result<(), Error> {
    if request.on.is_none() && request.replace.is_none() {
        return Ok(());
    }
    let message = "`on` and `replace` are for a gateway of a fleet, and this server is none";
    Err(Error::new(ErrorCode::NotAGateway, message).hint("leave them out, or ask a gateway"))
}

fn check_names(request: &wire::StartRequest) -> Result<(), Error> {
    for (what, name) in [("session", &request.session), ("key", &request.key)] {
        if name.as_ref().is_some_and(|name| name.len() > LONGEST_NAME) {
            return Err(invalid(format!("`{what}` is longer than {LONGEST_NAME} bytes")));
        }
    }
    let bytes: usize = request.labels.iter().map(|(name, value)| name.len() + value.len()).sum();
    if request.labels.len() > MOST_LABELS || bytes > LABEL_BYTES {
        let most = format!("{MOST_LABELS} labels with {LABEL_BYTES} bytes in all");
        return Err(invalid(format!("too many labels: at most {most}")));
    }
    Ok(())
}

/// So that it is not taken for an id, can stand in a path, and needs no quotes in a shell.
fn name(text: &str) -> Result<Name, Error> {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic();
    let may_follow = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_valid = text.as_bytes().first().is_some_and(is_letter)
        && text.len() <= LONGEST_PROCESS_NAME
        && text.bytes().all(may_follow)
        && text != wire::StartRequest::NO_NAME;
    if is_valid {
        return Ok(Name(text.into()));
    }
    let letters = "a letter, then letters, digits, `.`, `_` and `-`";
    Err(invalid(format!("invalid name {text:?}")).hint(format!(
        "a name is {letters}, at most {LONGEST_PROCESS_NAME} characters; `last` is the newest process"
    )))
}

fn program(request: &wire::StartRequest) -> Result<Program, Error> {
    match (&request.command, &request.shell) {
        (Some(argv), None) => Ok(Program::Argv(argv.iter().map(Into::into).collect())),
        (None, Some(text)) => Ok(Program::Shell(text.into())),
        (Some(_), Some(_)) => Err(invalid("both `command` and `shell` are given")
            .hint("use `command` for a program and its arguments, or `shell` for a shell command")),
        (None, None) => Err(invalid("neither `command` nor `shell` is given")
            .hint("use `command` for a program and its arguments, or `shell` for a shell command")),
    }
}

/// A relative path would start at the server's own directory, which clients do not know.
fn directory(path: &str) -> Result<PathBuf, Error> {
    let path = PathBuf::from(path);
    if path.is_absolute() {
        return Ok(path);
    }
    Err(invalid("`cwd` must be an absolute path")
        .hint("start it with `/`, or leave `cwd` out for the server's default directory"))
}

fn secrets(given: &wire::Secrets) -> Result<Vec<Secret>, Error> {
    if given.0.len() > MOST_SECRETS {
        return Err(invalid(format!("there are more than {MOST_SECRETS} secrets")));
    }
    let secret = |(name, value): (&String, &String)| Secret::new(name, value.as_bytes());
    let secrets = given.0.iter().map(secret).collect::<Result<_, _>>();
    secrets.map_err(|error| invalid(error.to_string()))
}

fn edits(env: &BTreeMap<String, Option<String>>) -> Vec<EnvEdit> {
    let edit = |(name, value): (&String, &Option<String>)| match value {
        Some(value) => EnvEdit::Set(name.into(), value.into()),
        None => EnvEdit::Unset(name.into()),
    };
    env.iter().map(edit).collect()
}

fn stdin(asked: Option<&wire::Stdin>) -> Result<Stdin, Error> {
    Ok(match asked {
        None | Some(wire::Stdin::Closed) => Stdin::Closed,
        Some(wire::Stdin::Open) => Stdin::Open,
        Some(wire::Stdin::Text(text)) => Stdin::Given(text.clone().into_bytes()),
        Some(wire::Stdin::Base64(text)) => {
            let bytes = base64_simd::STANDARD.decode_to_vec(text);
            Stdin::Given(bytes.map_err(|_| invalid("`stdin.base64` is not base64"))?)
        }
    })
}

fn streams(request: &wire::StartRequest) -> Result<Streams, Error> {
    match (request.tty, request.streams) {
        (Some(_), Some(wire::StreamsAsked::Split)) => {
            Err(invalid("`tty` and `streams: split` cannot be combined: a terminal has one stream"))
        }
        (Some(wire::Tty { rows, cols }), _) => Ok(Streams::Pty(window_size(rows, cols)?)),
        (None, Some(wire::StreamsAsked::Split)) => Ok(Streams::Split),
        (None, Some(wire::StreamsAsked::Merged) | None) => Ok(Streams::Merged),
    }
}

pub(crate) fn window_size(rows: u16, cols: u16) -> Result<WindowSize, Error> {
    match (rows, cols) {
        (0, _) | (_, 0) => Err(invalid("`rows` and `cols` must be greater than 0")),
        (rows, cols) => Ok(WindowSize { rows, cols }),
    }
}

pub fn resources(limits: wire::Limits) -> Resources {
    let wire::Limits { memory_bytes, cpus, pids, open_files, file_size_bytes, cpu_time_ms, strict } =
        limits;
    Resources {
        memory: memory_bytes,
        milli_cpus: cpus.map(|cpus| cpus.thousandths.into()),
        pids,
        open_files,
        file_size: file_size_bytes,
        cpu_time: cpu_time_ms.map(Duration::from_millis),
        strict,
    }
}

/// Fields that are absent are taken from `default`.
pub(crate) fn stop_policy(
    asked: Option<&wire::StopPolicy>,
    default: StopPolicy,
) -> Result<StopPolicy, Error> {
    let Some(asked) = asked else { return Ok(default) };
    let signal = asked.signal.as_deref().map(signal).transpose()?;
    Ok(StopPolicy {
        signal: signal.unwrap_or(default.signal),
        grace: asked.grace_ms.map_or(default.grace, Duration::from_millis),
    })
}

pub(crate) fn signal(text: &str) -> Result<Signal, Error> {
    text.parse().map_err(|_| {
        invalid(format!("unknown signal {text:?}"))
            .hint("use a name like TERM or SIGTERM, or a number")
    })
}

const _: () = assert!(wire::StartRequest::LEAST_QUOTA == Quota::LEAST, "two words for one bound");

fn quota(bytes: Option<u64>) -> Result<Quota, Error> {
    let Some(bytes) = bytes else { return Ok(Quota::DEFAULT) };
    Quota::new(bytes).map_err(|error| invalid(error.to_string()))
}

/// What a pattern is compared with.
pub(crate) fn reading(raw: Option<bool>) -> Reading {
    if raw == Some(true) { Reading::Raw } else { Reading::Plain }
}

/// A count that a request gives, between 1 and `most`.
pub(crate) fn count(name: &str, given: u64, most: u64) -> Result<usize, Error> {
    if given == 0 {
        return Err(invalid(format!("`{name}` must be greater than 0")));
    }
    if given > most {
        return Err(invalid(format!("`{name}` must be at most {most}")));
    }
    Ok(usize::try_from(given).unwrap_or(usize::MAX))
}

pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidRequest, message)
}
