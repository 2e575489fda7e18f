//! The Codex door: `command/exec` and `process/*` as the app-server of Codex offers them.
//!
//! A connection is one client. It has its own process ids, and everything it started is stopped when
//! it closes. Nothing here reads a pipe, keeps a timer or kills: the engine does.
//!
//! In the order of a command's life:
//! - `lines`, `websocket`: the two transports
//! - `connection`: one client with its table of ids, which reads no faster than it handles; `door`: what all connections share, with
//!   `login_shell`
//! - `jsonrpc`: the messages; `methods`: from a method to an action, in the order of Codex's checks;
//!   `initialize`, `start`, `control`: the methods; `base64`
//! - `launch`, `sandbox`: the parameters as a launch of the engine
//! - `command`: the task of one command, with `kill_on_drop`
//! - `output`: from its log to the client; `result`: how it ended
//! - `errors`: every fault, also those that come of the engine's errors
//! - `send_queue`: messages that the client has not taken yet
//! - `survivors`: what ended commands left running
//!
//! docs/compat-codex.md lists what is the same as in Codex and what differs.

mod base64;
mod command;
mod connection;
mod control;
mod door;
mod errors;
mod initialize;
mod jsonrpc;
mod kill_on_drop;
mod launch;
pub mod lines;
mod login_shell;
mod methods;
mod output;
mod result;
mod sandbox;
mod send_queue;
mod start;
mod survivors;
mod websocket;

pub use connection::MAX_MESSAGE_BYTES;
pub use door::{Door, LocalExecution, Settings};
pub use websocket::{offered, route, router};
