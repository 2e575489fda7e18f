//! The Codex door: `command/exec` and `process/*` as the app-server of Codex offers them.
//!
//! A connection is one client. It has its own process ids, and everything it started is stopped when
//! it closes. Nothing here reads a pipe, keeps a timer or kills: the engine does.
//!
//! In the order of a command's life:
//! - `transport`: the routes, and a client on a pair of streams
//! - `connection`: one client with its table of ids, which reads no faster than it handles; `door`: what
//!   all connections share
//! - `jsonrpc`: the messages; `methods`: from a method to an action, in the order of Codex's checks;
//!   `initialize`, `start`, `control`: the methods
//! - `launch`, `sandbox`: the parameters as a launch of the engine
//! - `command`: the task of one command
//! - `output`: from its log to the client; `result`: how it ended
//! - `errors`: every fault, also those that come of the engine's errors
//!
//! docs/compat-codex.md lists what is the same as in Codex and what differs.

mod command;
mod connection;
mod control;
mod door;
mod errors;
mod initialize;
mod jsonrpc;
mod launch;
mod methods;
mod output;
mod result;
mod sandbox;
mod start;
mod transport;

pub use super::rpc::MAX_MESSAGE_BYTES;
pub use door::{Door, LocalExecution, Settings};
pub use transport::{offered, route, router, serve_lines};
