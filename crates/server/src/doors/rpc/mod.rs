//! Clients that speak JSON-RPC over lines or a WebSocket, for every door whose protocol that is.
//!
//! - `connections`: all of a door; `lines`, `websocket`: the two transports; `send_queue`: messages that the client has not taken yet
//! - `message`, `fault`: the parts of messages; `base64`
//! - `kill_on_drop`, `survivors`: what a client started ends with it
//! - `login_shell`, `hidden_names`: for the environment of commands

pub(crate) mod base64;
mod connections;
mod fault;
mod hidden_names;
pub(crate) mod kill_on_drop;
pub(crate) mod lines;
mod login_shell;
mod message;
pub(crate) mod send_queue;
pub(crate) mod survivors;
pub(crate) mod websocket;

pub(crate) use connections::Connections;
pub(crate) use fault::Fault;
pub(crate) use hidden_names::is_hidden;
pub(crate) use login_shell::login_shell;
pub(crate) use message::{RequestId, failure, success, to_json};

/// A longer message is not read. The largest useful one fills a command's input queue, which is
/// 22 MiB in base64.
pub const MAX_MESSAGE_BYTES: usize = 128 << 20;

/// What a transport gives a connection.
pub(crate) trait Incoming: Send {
    /// The next message; `None` when there are no more. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Option<Vec<u8>>> + Send;
}
