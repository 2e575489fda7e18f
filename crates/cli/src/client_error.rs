//! What a server said, or that none is there, for people.

use std::io;
use std::path::Path;

use lastbyte_client::wire::{Error, ErrorCode};
use lastbyte_client::{Address, ClientError, Problem};
use lastbyte_server::listen::UnixError;
use rustix::io::Errno;

use crate::paths;
use crate::server_args::is_not_running;
use crate::usage::{self, quoted};

/// The error as one text, with what to do next.
pub(crate) fn to_text(error: &anyhow::Error) -> String {
    if let Some(refusal) = refusal(error) {
        let what = match refusal.message.as_str() {
            "missing token" => "the server needs a token",
            what => what,
        };
        return with_options(match advice(refusal) {
            Some(advice) => format!("{what}; {advice}"),
            None => what.to_owned(),
        });
    }
    match error.downcast_ref() {
        Some(client @ ClientError::Connect { address, .. }) if is_not_running(client) => {
            let advice = match address {
                Address::Unix(path) => match server_flag(path) {
                    flag if flag.is_empty() => {
                        "`lastbyte ps` starts one and shows what an earlier one has left".into()
                    }
                    flag => format!("`lastbyte start{flag} 'COMMAND'` starts one"),
                },
                Address::Tcp { addr, .. } => format!("`lastbyte serve --listen {addr}` starts one"),
            };
            format!("{}; {advice}", not_running(address))
        }
        // Why it broke does not matter: what to do is the same.
        Some(unknown @ ClientError::StartUnknown { .. }) => {
            format!(
                "{unknown}; look for it with `lastbyte ps`; a start with --key is repeated safely"
            )
        }
        Some(ClientError::Connect { address: Address::Unix(path), source })
            if source.kind() == io::ErrorKind::InvalidInput =>
        {
            UnixError::TooLong { path: path.clone() }.to_string()
        }
        Some(ClientError::Connect { source, .. })
            if source.raw_os_error() == Some(Errno::PERM.raw_os_error()) && is_confined() =>
        {
            format!("{error:#}; this command runs in a sandbox without network")
        }
        _ if is_out_of_descriptors(error) => format!("{error:#}; raise the limit with `ulimit -n`"),
        _ => format!("{error:#}"),
    }
}

/// With options where the server names fields of a request.
fn with_options(text: String) -> String {
    let fields = ["key", "protect", "session", "writable"];
    fields
        .into_iter()
        .fold(text, |text, name| text.replace(&format!("`{name}`"), &format!("--{name}")))
}

/// Whether this process runs in a sandbox of lastbyte.
fn is_confined() -> bool {
    lastbyte_sys::confine::marked(std::process::id().cast_signed()).unwrap_or(false)
}

fn is_out_of_descriptors(error: &anyhow::Error) -> bool {
    let causes = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.into_iter().any(|cause| cause.raw_os_error() == Some(Errno::MFILE.raw_os_error()))
}

/// The server was there, and is not any more.
#[derive(Debug, thiserror::Error)]
#[error("the server is gone; what happened to the process is unknown")]
pub(crate) struct ServerGone;

/// An error of a request that followed others to the same server.
pub(crate) fn after_contact(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    if error.downcast_ref().is_some_and(is_gone) { ServerGone.into() } else { error }
}

/// Whether this error, after earlier answers of the server, means that it is gone. One that is just
/// dying lets a client in and resets it.
pub(crate) fn is_gone(error: &ClientError) -> bool {
    let broke = |problem: &Problem| matches!(problem, Problem::Http(_) | Problem::Ended);
    match error {
        ClientError::Protocol { source, .. } => broke(source),
        error => is_not_running(error),
    }
}

pub(crate) fn not_running(address: &Address) -> String {
    format!("no server is running at {}", address.place())
}

/// The option that leads to the server with this socket, with a space before it; empty for the usual
/// server.
fn server_flag(socket: &Path) -> String {
    let is_at = |state| paths::socket_path(state, None).is_ok_and(|path| path == socket);
    match socket.parent() {
        _ if is_at(None) => String::new(),
        Some(state) if is_at(Some(state)) => path_flag("state", state),
        _ => path_flag("socket", socket),
    }
}

/// The option that leads to the server with this state directory, in the same way.
pub(crate) fn state_flag(state: &Path) -> String {
    let usual = paths::state_dir(None).is_ok_and(|usual| usual == state);
    if usual { String::new() } else { path_flag("state", state) }
}

fn path_flag(name: &str, path: &Path) -> String {
    format!(" --{name} {}", quoted(&path.to_string_lossy()))
}

/// What the server, or the engine in its place, answered instead of doing it.
pub(crate) fn refusal(error: &anyhow::Error) -> Option<&Error> {
    match error.downcast_ref() {
        Some(ClientError::Refused(refusal)) => Some(refusal),
        _ => error.downcast_ref(),
    }
}

/// An answer that the request does not allow.
pub(crate) fn unexpected(what: &str) -> ClientError {
    ClientError::Refused(Error::new(ErrorCode::Failed, what))
}

/// What to do next. The server's advice is for programs; where it speaks of their words, ours take
/// its place.
fn advice(refusal: &Error) -> Option<&str> {
    match (refusal.code, refusal.hint.as_deref()) {
        (ErrorCode::ProcessNotFound, _) if refusal.message == "there are no processes yet" => {
            Some("start one with `lastbyte start`")
        }
        (ErrorCode::ProcessNotFound, Some(hint)) if hint.starts_with("a part of an id") => {
            Some("a part of an id needs at least 4 characters; `lastbyte ps` lists processes")
        }
        (ErrorCode::ProcessNotFound, _) => Some("`lastbyte ps` lists processes"),
        (ErrorCode::Unauthorized, _) => {
            Some("pass --token-file FILE (the file \"token\" in its state directory)")
        }
        // Without advice it was open, and is closed for good.
        (ErrorCode::StdinNotOpen, Some(_)) => {
            Some("start it again with `lastbyte start --stdin-open`")
        }
        (ErrorCode::ProgramNotFound, _) if usage::program_is_shell_text() => {
            Some("after `--`, give the program and each argument separately, or leave out `--`")
        }
        (ErrorCode::StdinGap, _) => Some("continue with --offset and that number"),
        (ErrorCode::BadCwd, _) => Some("--cwd needs a directory that you can enter"),
        (_, hint) => hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_not_there_any_more_is_gone() {
        let refused = |kind: io::ErrorKind| {
            let address = Address::Unix("/s".into());
            after_contact(ClientError::Connect { address, source: kind.into() })
        };
        assert!(refused(io::ErrorKind::ConnectionRefused).is::<ServerGone>());
        assert!(!refused(io::ErrorKind::PermissionDenied).is::<ServerGone>());
        let broke = |source| after_contact(ClientError::Protocol { asked: "GET /".into(), source });
        assert!(broke(Problem::Ended).is::<ServerGone>());
        assert!(!broke(Problem::Base64).is::<ServerGone>());
    }
}
