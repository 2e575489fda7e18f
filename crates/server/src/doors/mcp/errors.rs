//! Errors in the words of the tools: what failed, and which call to make next.

use lastbyte_wire::{Error, ErrorCode};

/// The text of an answer that says no.
pub(super) fn to_text(error: &Error) -> String {
    let message = error.message.replace("`cwd`", "`workdir`");
    match next(error) {
        Some(next) => format!("error: {message}\nnext: {}", next.replace("`cwd`", "`workdir`")),
        None => format!("error: {message}"),
    }
}

/// The server's advice is for programs that speak HTTP; where it names a route, ours takes its place.
fn next(error: &Error) -> Option<&str> {
    match (error.code, error.hint.as_deref()) {
        (ErrorCode::ProcessNotFound, _) if error.message.starts_with("there are no processes") => {
            Some("start one with exec_command")
        }
        (ErrorCode::ProcessNotFound, _) => {
            Some("list_processes has the ids of this session's processes")
        }
        (ErrorCode::StdinNotOpen, Some(_)) => {
            Some("start it again by exec_command with tty or stdin=open")
        }
        (ErrorCode::StdinNotOpen, None) => Some("read_output shows what it has written"),
        (ErrorCode::ProcessExited, _) => Some("read_output shows its output and how it ended"),
        (ErrorCode::ReadOnlyToken, _) => {
            Some("use wait, read_output, search_output and list_processes, which change nothing")
        }
        (ErrorCode::NameTaken, _) => {
            Some("use another name, or stop that process with stop_process")
        }
        (ErrorCode::CapReached, _) => {
            Some("stop processes with stop_process, or wait until some have ended")
        }
        (ErrorCode::StdinFull, _) => {
            Some("the process does not read: call wait or read_output before writing more")
        }
        (_, hint) => hint,
    }
}
