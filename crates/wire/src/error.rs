//! The one list of errors, and the one table of what each is to HTTP, to JSON-RPC and to a shell.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an answer is when it is an error: `{"error":{"code","message","hint"?}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    pub error: Error,
}

/// What happened, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Error {
    pub code: ErrorCode,
    /// What happened, in a sentence fragment that names the thing.
    pub message: String,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Error {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.message)
    }
}

impl std::error::Error for Error {}

/// Declares the codes and their table in one place.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal: $http:literal, $rpc:literal, $exit:literal;)*) => {
        /// What went wrong, in a word that stays the same.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $text)] $name,)*
        }

        impl ErrorCode {
            /// Every code there is.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The word on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The status of an HTTP answer.
            pub fn http_status(self) -> u16 {
                match self { $(Self::$name => $http,)* }
            }

            /// The code of a JSON-RPC error.
            pub fn json_rpc(self) -> i32 {
                match self { $(Self::$name => $rpc,)* }
            }

            /// The exit code of the command line.
            pub fn exit_code(self) -> u8 {
                match self { $(Self::$name => $exit,)* }
            }
        }
    };
}

codes! {
    /// The request is not one: bad JSON, an unknown field, a value out of its range.
    InvalidRequest = "invalid_request": 400, -32602, 2;
    /// The pattern is no regular expression, or too large a one.
    InvalidPattern = "invalid_pattern": 400, -32602, 2;
    /// No token, or a wrong one.
    Unauthorized = "unauthorized": 401, -32600, 125;
    /// The peer belongs to another user.
    ForbiddenPeer = "forbidden_peer": 403, -32600, 125;
    /// The peer is in a sandbox that the server is not in.
    SandboxedPeer = "sandboxed_peer": 403, -32600, 125;
    /// A page of another site asks.
    CrossSite = "cross_site": 403, -32600, 125;
    /// There is no process with this id.
    ProcessNotFound = "process_not_found": 404, -32600, 125;
    /// There is nothing at this path.
    RouteNotFound = "route_not_found": 404, -32601, 125;
    /// The path is there, not for this method.
    MethodNotAllowed = "method_not_allowed": 405, -32601, 125;
    /// The body, or the head, did not come in time.
    RequestTooSlow = "request_too_slow": 408, -32600, 125;
    /// The key was used for another launch.
    KeyConflict = "key_conflict": 409, -32600, 125;
    /// It is for ended processes, and this one has not ended.
    NotEnded = "not_ended": 409, -32600, 125;
    /// Somebody still writes to its log.
    OutputHeld = "output_held": 409, -32600, 125;
    /// The process has exited.
    ProcessExited = "process_exited": 409, -32600, 125;
    /// Its standard input was never open, or is closed.
    StdinNotOpen = "stdin_not_open": 409, -32600, 125;
    /// The write would leave a gap in the input.
    StdinGap = "stdin_gap": 409, -32600, 125;
    /// The command does not read, and its input queue is full.
    StdinFull = "stdin_full": 429, -32600, 125;
    /// It has no terminal.
    NoTerminal = "no_terminal": 409, -32600, 125;
    /// The body is larger than the bound.
    BodyTooLarge = "body_too_large": 413, -32600, 125;
    /// The part that was asked for is not in the answer.
    RangeNotSatisfiable = "range_not_satisfiable": 416, -32602, 125;
    /// The `Host` is not one of this server's.
    UnknownHost = "unknown_host": 421, -32600, 125;
    /// The directory to run in is missing or is none.
    BadCwd = "bad_cwd": 422, -32602, 125;
    /// The sandbox policy cannot be enforced here, and the command is not run without it.
    SandboxUnavailable = "sandbox_unavailable": 422, -32603, 125;
    /// The program was not found.
    ProgramNotFound = "program_not_found": 422, -32602, 127;
    /// The program was found and cannot be run.
    ProgramNotRunnable = "program_not_runnable": 422, -32602, 126;
    /// The head of the request is larger than the bound, or has too many fields.
    HeadTooLarge = "head_too_large": 431, -32600, 125;
    /// The machine would not start it, or its log cannot be read.
    Failed = "failed": 500, -32603, 125;
    /// As many connections as the server takes are there already.
    TooManyConnections = "too_many_connections": 503, -32600, 125;
    /// As many requests as the server takes are waiting already.
    TooManyWaits = "too_many_waits": 503, -32600, 125;
    /// As many bodies as fit are on their way already.
    TooManyBodies = "too_many_bodies": 503, -32600, 125;
    /// The server is shutting down.
    ShuttingDown = "shutting_down": 503, -32600, 125;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_a_code_is_the_one_it_is_written_as() {
        for code in ErrorCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
            assert!((400..600).contains(&code.http_status()), "{code:?}");
            assert!(code.exit_code() >= 125 || code.exit_code() == 2, "{code:?}");
        }
    }

    #[test]
    fn an_error_without_advice_says_nothing_of_advice() {
        let body = ErrorBody { error: Error::new(ErrorCode::Failed, "the disk is full") };
        let want = r#"{"error":{"code":"failed","message":"the disk is full"}}"#;
        assert_eq!(serde_json::to_string(&body).unwrap(), want);
    }
}
