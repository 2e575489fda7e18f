//! A byte stream over the broker, so that a connection to a node is one like any other.
//!
//! ```text
//! client ── HTTP ── socket ── carrier ══ messages of the broker ══ carrier ── socket ── server
//! ```
//!
//! The broker may lose or double a message, but keeps the order of one publisher. So each message
//! names its offset: what came before is thrown away, and what is missing ends the stream, as a
//! broken connection does. Nothing is sent again here: clients that lose a connection know what to
//! do. A receiver says how far it has read, and a sender is never more than a window ahead. Both
//! ends say every two seconds that they are there and how much they have sent, so that a stream does
//! not wait for a last message that was lost.
//!
//! `frame` is one message, `stream` carries one stream, `streams` has all of one end.

mod frame;
mod stream;
mod streams;

pub(crate) use stream::{Ended, Why};
pub(crate) use streams::{Connection, Streams, is_inbox};
