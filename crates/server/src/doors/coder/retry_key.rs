//! The name that makes a start repeatable, by either of the two members that can give it.

use std::fmt;

use lastbyte_engine::Key;
use lastbyte_wire::StartRequest as Native;

use super::chat::Chat;
use super::go_quote::quote;
use super::request::StartRequest;

/// A start with the same one and the same request is the same process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RetryKey {
    /// `client_token`: one of the server's keys, whatever the chat.
    ClientToken(String),
    /// `idempotency_key`: a name within its chat.
    IdempotencyKey(String),
}

impl RetryKey {
    /// With both members `idempotency_key` counts: the agent does not know the other.
    pub(super) fn new(request: &StartRequest) -> Option<Self> {
        match (request.idempotency_key.as_str(), request.client_token.as_str()) {
            ("", "") => None,
            ("", token) => Some(Self::ClientToken(token.into())),
            (key, _) => Some(Self::IdempotencyKey(key.into())),
        }
    }

    /// The key as the engine and the native API have it. An id of a chat has no colon, so no two
    /// chats share one.
    pub(super) fn in_engine(&self, chat: &Chat) -> Key {
        match self {
            Self::ClientToken(token) => Key(token.clone()),
            Self::IdempotencyKey(key) => {
                Key(format!("coder:{}:{key}", chat.own.as_deref().unwrap_or_default()))
            }
        }
    }

    /// Whether it is longer than the native API allows: it is kept with every event.
    pub(super) fn is_too_long(&self) -> bool {
        self.text().len() > Native::LONGEST_NAME
    }

    /// What it is called in messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::ClientToken(_) => "Process token",
            Self::IdempotencyKey(_) => "Idempotency key",
        }
    }

    fn text(&self) -> &str {
        let (Self::ClientToken(text) | Self::IdempotencyKey(text)) = self;
        text
    }
}

impl fmt::Display for RetryKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.kind(), quote(self.text().as_bytes()))
    }
}
