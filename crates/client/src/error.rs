//! What can go wrong between a client and its server.

use std::io;

use hyper::StatusCode;

use crate::Address;
use crate::wire;

/// Why there is no answer, or that the answer is no.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No server listens there, or the connection was refused. Nothing was sent.
    #[error("cannot connect to {address}")]
    Connect { address: Address, source: io::Error },
    /// The request may or may not have been carried out.
    #[error("{asked} failed")]
    Protocol { asked: String, source: Problem },
    /// A start without a key was cut off, so it is not repeated.
    #[error(
        "the connection broke before the server answered; whether the command was started is unknown"
    )]
    StartUnknown { source: Problem },
    /// Another program answered, with this status if it speaks HTTP.
    #[error("{} is not a lastbyte server{}", address.place(), answered(*status))]
    Foreign { address: Address, status: Option<StatusCode> },
    /// The server's own word.
    #[error(transparent)]
    Refused(#[from] wire::Error),
}

/// What is wrong with an answer.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("the connection broke")]
    Http(#[from] hyper::Error),
    #[error("the request cannot be written")]
    Request(#[from] hyper::http::Error),
    #[error("unexpected JSON: {text}")]
    Json { text: String, source: serde_json::Error },
    #[error("the answer has no header {name}")]
    Head { name: &'static str },
    #[error("the WebSocket broke")]
    WebSocket(#[from] Box<tokio_tungstenite::tungstenite::Error>),
    #[error("unknown event {name:?}")]
    Event { name: String },
    #[error("invalid base64")]
    Base64,
    #[error("the connection was closed before the answer")]
    Ended,
}

fn answered(status: Option<StatusCode>) -> String {
    status.map(|status| format!(" (it answered {status})")).unwrap_or_default()
}

/// The beginning of something that may be long, for people.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    const MOST: usize = 200;
    String::from_utf8_lossy(&bytes[..bytes.len().min(MOST)]).escape_debug().to_string()
}
