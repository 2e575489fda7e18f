//! What a server said, or that none is there, for people.

use lastbyte_client::wire::ErrorCode;
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
                Address::Tcp { .. } => format!("no server is running at {address}"),
            }
        }
        // The server's advice is for programs.
        Some(ClientError::Refused(refusal)) if refusal.code == ErrorCode::ProcessNotFound => {
            format!("{refusal}; `lastbyte ps` lists those there are")
        }
        Some(ClientError::Refused(refusal)) => match &refusal.hint {
            Some(hint) => format!("{refusal}; {hint}"),
            None => refusal.to_string(),
        },
        Some(ClientError::Connect { .. } | ClientError::Protocol { .. }) | None => {
            format!("{error:#}")
        }
    }
}

/// The client's error in this one, if it is one.
pub(crate) fn of(error: &anyhow::Error) -> Option<&ClientError> {
    match error.downcast_ref() {
        Some(FindError::Client(client)) => Some(client),
        _ => error.downcast_ref(),
    }
}
