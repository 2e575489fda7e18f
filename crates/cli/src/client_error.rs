//! What a server said, or that none is there, for people.

use lastbyte_client::wire::{Error, ErrorCode};
use lastbyte_client::{Address, ClientError};

use crate::process_id::FindError;
use crate::server_args::nobody_listens;

/// The error as one text, with what to do next.
pub(crate) fn in_words(error: &anyhow::Error) -> String {
    match of(error) {
        Some(client @ ClientError::Connect { address, .. }) if nobody_listens(client) => {
            match address {
                Address::Unix(path) => format!(
                    "no server is running at {}; `lastbyte start …` starts one",
                    path.display()
                ),
                Address::Tcp { addr, .. } => format!(
                    "no server is running at {address}; `lastbyte serve --listen {addr}` is one"
                ),
            }
        }
        Some(ClientError::Refused(refusal)) => match advice(refusal) {
            Some(advice) => format!("{refusal}; {advice}"),
            None => refusal.to_string(),
        },
        Some(ClientError::Connect { .. } | ClientError::Protocol { .. }) | None => {
            format!("{error:#}")
        }
    }
}

/// What to do next. The server's advice is for programs; where it speaks of their words, ours take
/// its place.
fn advice(refusal: &Error) -> Option<&str> {
    match (refusal.code, refusal.hint.as_deref()) {
        (ErrorCode::ProcessNotFound, _) => Some("`lastbyte ps` lists those there are"),
        (ErrorCode::NotEnded | ErrorCode::OutputHeld, _) => {
            Some("`lastbyte forget --stop` stops what is left of it first")
        }
        (ErrorCode::Unauthorized, _) => {
            Some("give it with --token-file; the server says at its start where the token is")
        }
        // Without advice it was open, and is closed for good.
        (ErrorCode::StdinNotOpen, Some(_)) => Some("start it with --stdin-open"),
        (ErrorCode::BadCwd, _) => Some("--cwd takes a directory that exists"),
        (_, hint) => hint,
    }
}

/// The client's error in this one, if it is one.
pub(crate) fn of(error: &anyhow::Error) -> Option<&ClientError> {
    match error.downcast_ref() {
        Some(FindError::Client(client)) => Some(client),
        _ => error.downcast_ref(),
    }
}
