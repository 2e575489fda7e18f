//! What a client is told of a request that failed.

use serde::{Deserialize, Serialize};

/// A code and a text for the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fault {
    code: i32,
    message: String,
}

impl Fault {
    pub(crate) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The request is impossible, or impossible at this moment.
    pub(crate) fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(-32600, message)
    }

    /// Its members are wrong, or contradict each other.
    pub(crate) fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(-32602, message)
    }

    /// It was valid, and failed.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(-32603, message)
    }

    /// A task of ours has panicked.
    pub(crate) fn task_failed() -> Self {
        Self::internal("the task that ran the command has failed")
    }
}
