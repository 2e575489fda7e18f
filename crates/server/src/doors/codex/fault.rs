//! An error as this protocol tells it. Codes and texts are those of Codex, word for word.

use serde::Serialize;

/// A code and a text for the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Fault {
    code: i32,
    message: String,
}

impl Fault {
    /// The request is not possible, or not at this moment.
    pub(super) fn invalid_request(message: impl Into<String>) -> Self {
        Self { code: -32600, message: message.into() }
    }

    /// Its members contradict each other.
    pub(super) fn invalid_params(message: impl Into<String>) -> Self {
        Self { code: -32602, message: message.into() }
    }

    /// It was right, and could not be done.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self { code: -32603, message: message.into() }
    }

    /// A task of ours has panicked.
    pub(super) fn task_failed() -> Self {
        Self::internal("the task that ran the command has failed")
    }

    /// There is no room for it now.
    pub(super) fn overloaded(message: impl Into<String>) -> Self {
        Self { code: -32001, message: message.into() }
    }
}
