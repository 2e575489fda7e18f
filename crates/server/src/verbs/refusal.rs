//! Errors of the engine as errors of the API: each once.

use lastbyte_engine::{ForgetError, Refused, ResizeError, StartError, WriteError};
use lastbyte_output::views::search::PatternError;
use lastbyte_wire::{Error, ErrorCode};

pub(crate) fn of_start(error: &StartError) -> Error {
    let code = code_of(error.refused());
    let error = Error::new(code, with_cause(error));
    match code {
        ErrorCode::KeyConflict => error.hint("use a new key for another launch"),
        ErrorCode::BadCwd => error.hint("`cwd` must be a directory that exists"),
        ErrorCode::SandboxUnavailable => {
            error.hint("`lastbyte doctor` tells which policies can be enforced here")
        }
        _ => error,
    }
}

/// The code of a start that came to nothing.
pub(crate) fn code_of(refused: Refused) -> ErrorCode {
    match refused {
        Refused::Launch => ErrorCode::InvalidRequest,
        Refused::Cwd => ErrorCode::BadCwd,
        Refused::ProgramNotFound => ErrorCode::ProgramNotFound,
        Refused::ProgramNotRunnable => ErrorCode::ProgramNotRunnable,
        Refused::Sandbox => ErrorCode::SandboxUnavailable,
        Refused::KeyConflict => ErrorCode::KeyConflict,
        Refused::Closed => ErrorCode::ShuttingDown,
        Refused::Failed => ErrorCode::Failed,
    }
}

pub(super) fn of_write(error: WriteError) -> Error {
    let (code, hint) = match error {
        WriteError::NotOpen => {
            (ErrorCode::StdinNotOpen, Some("start it with `\"stdin\":\"open\"`"))
        }
        WriteError::Closed | WriteError::Broken => (ErrorCode::StdinNotOpen, None),
        WriteError::Exited => (ErrorCode::ProcessExited, None),
        WriteError::QueueFull { .. } => {
            (ErrorCode::StdinFull, Some("write again when the command has read"))
        }
        WriteError::Gap { .. } => (ErrorCode::StdinGap, Some("go on at the accepted offset")),
    };
    let refusal = Error::new(code, error.to_string());
    hint.map_or(refusal.clone(), |hint| refusal.hint(hint))
}

pub(super) fn of_resize(error: ResizeError) -> Error {
    let code = match error {
        ResizeError::NoTerminal => ErrorCode::NoTerminal,
        ResizeError::Exited => ErrorCode::ProcessExited,
        ResizeError::Zero => ErrorCode::InvalidRequest,
        ResizeError::Refused(_) => ErrorCode::Failed,
    };
    Error::new(code, with_cause(&error))
}

pub(super) fn of_forget(error: &ForgetError) -> Error {
    let code = match error {
        ForgetError::NotFound { .. } => ErrorCode::ProcessNotFound,
        ForgetError::NotEnded { .. } => ErrorCode::NotEnded,
        ForgetError::Held { .. } => ErrorCode::OutputHeld,
        ForgetError::Remove { .. } => ErrorCode::Failed,
    };
    let refusal = Error::new(code, with_cause(error));
    match code {
        ErrorCode::NotEnded | ErrorCode::OutputHeld => {
            refusal.hint("`?stop=true` stops what is left of it first")
        }
        _ => refusal,
    }
}

pub(super) fn of_pattern(error: &PatternError) -> Error {
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
pub(crate) fn broken(what: &str) -> Error {
    Error::new(ErrorCode::Failed, format!("{what} broke down, which is a fault of the server"))
}

/// A log that is gone is of a process that somebody has forgotten meanwhile.
pub(crate) fn unreadable(error: &std::io::Error) -> Error {
    if is_not_found(error) {
        let message = "the process was forgotten while its output was read";
        return Error::new(ErrorCode::ProcessNotFound, message);
    }
    Error::new(ErrorCode::Failed, format!("the log cannot be read: {}", with_cause(error)))
}

/// Whether this, or what caused it, is a file that is not there.
fn is_not_found(error: &(dyn std::error::Error + 'static)) -> bool {
    let own = error.downcast_ref::<std::io::Error>();
    own.is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
        || own.and_then(std::io::Error::get_ref).is_some_and(|inner| is_not_found(inner))
        || error.source().is_some_and(is_not_found)
}
