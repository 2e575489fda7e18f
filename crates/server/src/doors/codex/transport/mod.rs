//! The ways a client is reached: lines, as on standard input and output, and WebSockets.

mod incoming;
pub mod lines;
pub(super) mod websocket;

pub(super) use incoming::Incoming;
pub use incoming::MOST_MESSAGE_BYTES;
