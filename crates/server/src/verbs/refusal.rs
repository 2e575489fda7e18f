//! Errors of the engine as errors of the API. This is the one table for all doors.

use std::borrow::Cow;

use lastbyte_engine::{
    Errno, ForgetError, Key, KeyboardError, Process, Refused, ResizeError, SandboxError,
    SpawnError, StartError, WriteError,
};
use lastbyte_output::views::search::PatternError;
use lastbyte_wire::{Error, ErrorCode};
use tokio::task::spawn_blocking;

use crate::scoped_key;

pub(crate) fn from_start(error: &StartError) -> Error {
    let code = start_code(error.refused());
    let hint = match code {
        ErrorCode::KeyConflict => Some("use another key"),
        ErrorCode::NameTaken => Some("stop that process first, or use another name"),
        ErrorCode::BadCwd => Some("`cwd` must be a directory that the server can enter"),
        ErrorCode::ProgramNotRunnable => script_hint(error),
        ErrorCode::LimitUnavailable => {
            Some("run `lastbyte doctor` to see which limits the kernel enforces here")
        }
        ErrorCode::LimitAboveCap => Some("ask for less, or leave the limit out"),
        ErrorCode::CapReached => Some("stop or forget processes, or wait until some have ended"),
        _ => sandbox_hint(error),
    };
    refusal(code, &*with_sent_key(error), hint)
}

/// The client knows its key as it sent it.
fn with_sent_key(error: &StartError) -> Cow<'_, StartError> {
    match error {
        StartError::KeyConflict { key, differs } => {
            let (key, differs) = (Key(scoped_key::sent(key).to_owned()), differs.clone());
            Cow::Owned(StartError::KeyConflict { key, differs })
        }
        _ => Cow::Borrowed(error),
    }
}

fn refusal(code: ErrorCode, error: &dyn std::error::Error, hint: Option<&str>) -> Error {
    Error { hint: hint.map(str::to_owned), ..Error::new(code, with_cause(error)) }
}

fn script_hint(error: &StartError) -> Option<&'static str> {
    let StartError::Spawn(SpawnError::Program { errno: Errno::NOEXEC, .. }) = error else {
        return None;
    };
    Some("if it is a script, it needs a #! line")
}

/// The other errors of a sandbox are about a path, and say what to do.
fn sandbox_hint(error: &StartError) -> Option<&'static str> {
    let StartError::Sandbox(error) = error else { return None };
    match error {
        SandboxError::NotEnforceable(_) | SandboxError::NeedsNamespaces { .. } => {
            Some("run `lastbyte doctor` to see which policies this machine can enforce")
        }
        SandboxError::Root { .. } => Some("`writable` needs an existing directory"),
        SandboxError::Protect { errno: Errno::ACCESS, .. } => {
            Some("give the server's user access to the directories above it (`chmod u+rwx`)")
        }
        SandboxError::Protect { .. } => {
            Some("create it first, because only what exists can be protected, or leave it out")
        }
        _ => None,
    }
}

/// The code of a failed start.
pub(crate) fn start_code(refused: Refused) -> ErrorCode {
    match refused {
        Refused::Launch => ErrorCode::InvalidRequest,
        Refused::Cwd => ErrorCode::BadCwd,
        Refused::ProgramNotFound => ErrorCode::ProgramNotFound,
        Refused::ProgramNotRunnable => ErrorCode::ProgramNotRunnable,
        Refused::Sandbox => ErrorCode::SandboxUnavailable,
        Refused::LimitUnavailable => ErrorCode::LimitUnavailable,
        Refused::LimitAboveCap => ErrorCode::LimitAboveCap,
        Refused::Cap => ErrorCode::CapReached,
        Refused::KeyConflict => ErrorCode::KeyConflict,
        Refused::NameTaken => ErrorCode::NameTaken,
        Refused::Closed => ErrorCode::ShuttingDown,
        Refused::Failed => ErrorCode::Failed,
    }
}

pub(crate) fn from_write(error: WriteError) -> Error {
    let (code, hint) = match error {
        WriteError::NotOpen => {
            (ErrorCode::StdinNotOpen, Some("start it with `\"stdin\":\"open\"`"))
        }
        WriteError::Closed | WriteError::Broken => (ErrorCode::StdinNotOpen, None),
        WriteError::Exited => (ErrorCode::ProcessExited, None),
        WriteError::KeyboardTaken => (ErrorCode::KeyboardTaken, Some(WAIT_FOR_KEYBOARD)),
        WriteError::QueueFull { .. } => {
            (ErrorCode::StdinFull, Some("write again once the command has read some input"))
        }
        WriteError::Gap { .. } => (ErrorCode::StdinGap, Some("continue at the accepted offset")),
    };
    refusal(code, &error, hint)
}

pub(crate) fn from_resize(error: ResizeError) -> Error {
    let code = match error {
        ResizeError::NoTerminal => ErrorCode::NoTerminal,
        ResizeError::Exited => ErrorCode::ProcessExited,
        ResizeError::KeyboardTaken => ErrorCode::KeyboardTaken,
        ResizeError::Zero => ErrorCode::InvalidRequest,
        ResizeError::Refused(_) => ErrorCode::Failed,
    };
    Error::new(code, with_cause(&error))
}

/// The same, and who has the keyboard.
pub(crate) fn from_write_to(process: &Process, error: WriteError) -> Error {
    naming_holder(process, from_write(error))
}

/// Says who has the keyboard, if that is why.
pub(crate) fn naming_holder(process: &Process, error: Error) -> Error {
    match process.keyboard().filter(|_| error.code == ErrorCode::KeyboardTaken) {
        Some(holder) => Error { message: format!("{:?} has the keyboard", holder.name), ..error },
        None => error,
    }
}

pub(crate) fn from_keyboard(error: &KeyboardError) -> Error {
    let (code, hint) = match error {
        KeyboardError::Taken(_) => (ErrorCode::KeyboardTaken, Some(WAIT_FOR_KEYBOARD)),
        KeyboardError::NoInput => (ErrorCode::StdinNotOpen, None),
        KeyboardError::Exited => (ErrorCode::ProcessExited, None),
        KeyboardError::Shown(_) => (ErrorCode::Failed, None),
    };
    refusal(code, error, hint)
}

const WAIT_FOR_KEYBOARD: &str = "try again once it is given back";

pub(super) fn from_forget(error: &ForgetError) -> Error {
    let code = match error {
        ForgetError::NotFound { .. } => ErrorCode::ProcessNotFound,
        ForgetError::NotEnded { .. } => ErrorCode::NotEnded,
        ForgetError::Held { .. } => ErrorCode::OutputHeld,
        ForgetError::Remove { .. } => ErrorCode::Failed,
    };
    let stoppable = matches!(code, ErrorCode::NotEnded | ErrorCode::OutputHeld);
    refusal(code, error, stoppable.then_some("use `?stop=true` to stop it first"))
}

pub(super) fn from_pattern(error: &PatternError) -> Error {
    Error::new(ErrorCode::InvalidPattern, with_cause(error))
}

/// The error and what caused it, in one line.
pub(crate) fn with_cause(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// A part of the server panicked; its log says where.
pub(crate) fn broken(doing: &str) -> Error {
    Error::new(ErrorCode::Failed, format!("internal error while {doing} (please report it)"))
}

/// Reads the log of this process on a thread that may block.
pub(super) async fn read_blocking<T, E>(
    process: &Process,
    doing: &str,
    read: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, Error>
where
    T: Send + 'static,
    E: std::error::Error + Send + 'static,
{
    let read = spawn_blocking(read).await.map_err(|_| broken(doing))?;
    read.map_err(|error| unreadable(process, &error))
}

/// The log of this process could not be read.
pub(crate) fn unreadable(process: &Process, error: &(dyn std::error::Error + 'static)) -> Error {
    if !is_not_found(error) {
        return Error::new(
            ErrorCode::Failed,
            format!("cannot read the log: {}", with_cause(error)),
        );
    }
    match process.log_file() {
        Some(file) => {
            let message = format!("cannot read the log: its file {} is gone", file.display());
            Error::new(ErrorCode::Failed, message)
                .hint("somebody has removed it; only the server may remove files of its state")
        }
        // The engine lets go of a file before it removes it.
        None => {
            let message = "the process was forgotten while its output was being read";
            Error::new(ErrorCode::ProcessNotFound, message)
        }
    }
}

/// Whether this, or what caused it, is a file that is not there.
fn is_not_found(error: &(dyn std::error::Error + 'static)) -> bool {
    let own = error.downcast_ref::<std::io::Error>();
    own.is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        || own.and_then(std::io::Error::get_ref).is_some_and(|inner| is_not_found(inner))
        || error.source().is_some_and(is_not_found)
}
