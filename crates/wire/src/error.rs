//! The one list of error codes, with the HTTP status and the exit code of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An error answer: `{"error":{"code","message","hint"?}}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorBody {
    pub error: Error,
}

/// What failed, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub code: ErrorCode,
    /// What failed, on what and why.
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

/// Declares the codes and their table in one place.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal: $http:literal, $exit:literal;)*) => {
        /// What went wrong, as a code that never changes.
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

            /// The exit code of the command line.
            pub fn exit_code(self) -> u8 {
                match self { $(Self::$name => $exit,)* }
            }
        }
    };
}

codes! {
    /// The request is invalid: bad JSON, an unknown field, a value out of range.
    InvalidRequest = "invalid_request": 400, 2;
    /// The pattern is not a valid regular expression, or is too large.
    InvalidPattern = "invalid_pattern": 400, 2;
    /// The token is missing or wrong.
    Unauthorized = "unauthorized": 401, 125;
    /// The client belongs to another user.
    ForbiddenPeer = "forbidden_peer": 403, 125;
    /// The client runs in a sandbox that the server is not in.
    SandboxedPeer = "sandboxed_peer": 403, 125;
    /// The request comes from a page of another site.
    CrossSite = "cross_site": 403, 125;
    /// The token is read-only, and the request would change something.
    ReadOnlyToken = "read_only_token": 403, 125;
    /// The token is for one session, and the request is about another one or the whole server.
    SessionToken = "session_token": 403, 125;
    /// The token is of a page, and the request is about another process or administers the server.
    PageToken = "page_token": 403, 125;
    /// There is no token with this id.
    TokenNotFound = "token_not_found": 404, 125;
    /// There is no process with this id or name.
    ProcessNotFound = "process_not_found": 404, 125;
    /// There is no such route.
    RouteNotFound = "route_not_found": 404, 125;
    /// The route does not support this method.
    MethodNotAllowed = "method_not_allowed": 405, 125;
    /// The body did not arrive in time.
    RequestTooSlow = "request_too_slow": 408, 125;
    /// The key was already used with a different command, option or environment.
    KeyConflict = "key_conflict": 409, 125;
    /// Another running process has the name.
    NameTaken = "name_taken": 409, 125;
    /// Several processes have an id with this prefix or suffix.
    AmbiguousId = "ambiguous_id": 409, 125;
    /// The process has not ended.
    NotEnded = "not_ended": 409, 125;
    /// The output of the process is still held open.
    OutputHeld = "output_held": 409, 125;
    /// The process has exited.
    ProcessExited = "process_exited": 409, 125;
    /// The standard input of the process was never open, or is closed.
    StdinNotOpen = "stdin_not_open": 409, 125;
    /// The write would leave a gap in the input.
    StdinGap = "stdin_gap": 409, 125;
    /// The command does not read, and its input queue is full.
    StdinFull = "stdin_full": 429, 125;
    /// Too many requests with a wrong token came from this address.
    TooManyFailedTokens = "too_many_failed_tokens": 429, 125;
    /// Another client has the keyboard of the process.
    KeyboardTaken = "keyboard_taken": 409, 125;
    /// The client does not have the keyboard of the process.
    KeyboardNotYours = "keyboard_not_yours": 409, 125;
    /// The process has no terminal.
    NoTerminal = "no_terminal": 409, 125;
    /// The program cannot replace that of the server, or the server has no keeper to replace it.
    UpgradeRefused = "upgrade_refused": 409, 125;
    /// The link was used, has expired or never existed.
    LinkGone = "link_gone": 410, 125;
    /// The body is larger than the limit.
    BodyTooLarge = "body_too_large": 413, 125;
    /// The requested range starts past the end of the output.
    RangeNotSatisfiable = "range_not_satisfiable": 416, 125;
    /// The `Host` header does not name this server.
    UnknownHost = "unknown_host": 421, 125;
    /// The working directory does not exist or is not a directory.
    BadCwd = "bad_cwd": 422, 125;
    /// The sandbox policy cannot be enforced, so the command was not started.
    SandboxUnavailable = "sandbox_unavailable": 422, 125;
    /// A limit cannot be enforced here, so the command was not started.
    LimitUnavailable = "limit_unavailable": 422, 125;
    /// A limit is higher than the server permits.
    LimitAboveCap = "limit_above_cap": 422, 125;
    /// The server, or the session, has as many running processes or as much output as it may have.
    CapReached = "cap_reached": 429, 125;
    /// The program was not found.
    ProgramNotFound = "program_not_found": 422, 127;
    /// The program was found but cannot be run.
    ProgramNotRunnable = "program_not_runnable": 422, 126;
    /// The head of the request is larger than the limit, or has too many fields.
    HeadTooLarge = "head_too_large": 431, 125;
    /// The system refused, for example to start the command or to read the log.
    Failed = "failed": 500, 125;
    /// The connection limit is reached, or the server has no file descriptor to check the client.
    TooManyConnections = "too_many_connections": 503, 125;
    /// The limit of waiting requests is reached.
    TooManyWaits = "too_many_waits": 503, 125;
    /// The memory limit for request bodies is reached.
    TooManyBodies = "too_many_bodies": 503, 125;
    /// The memory limit for answers that clients have not read is reached.
    TooManyAnswers = "too_many_answers": 503, 125;
    /// The server has not enough memory for the body.
    OutOfMemory = "out_of_memory": 503, 125;
    /// The node does not answer: whether its processes run, and whether it has carried out the request,
    /// is unknown.
    NodeSilent = "node_silent": 503, 125;
    /// The fleet has no such node.
    NodeNotFound = "node_not_found": 404, 125;
    /// No node takes the command.
    NoNode = "no_node": 503, 125;
    /// The node takes no more commands.
    NodeDraining = "node_draining": 503, 125;
    /// The start was meant for another time of this node in the fleet.
    NodeFenced = "node_fenced": 409, 125;
    /// The gateway has no connection to the fleet.
    FleetUnreachable = "fleet_unreachable": 503, 125;
    /// The server is no gateway of a fleet.
    NotAGateway = "not_a_gateway": 422, 125;
    /// The server is shutting down.
    ShuttingDown = "shutting_down": 503, 125;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_serialised_as_its_name() {
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
