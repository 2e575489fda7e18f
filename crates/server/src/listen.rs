//! Listening: sockets, connections and who may ask, before any route is looked for.
//!
//! ```text
//! listener ─▶ connection ─▶ gate: peer, host, origin, token ─▶ router
//!    bound        head, stall            refused with a reason
//! ```
//!
//! Nothing here knows a verb: it takes a router and hands it the requests that may come through.
//! Every bound is in [`Limits`](crate::Limits).

mod access_log;
mod auth;
pub mod body;
mod confinement;
mod connection;
mod gate;
mod host;
mod linger;
mod listener;
mod origin;
mod peer;
mod phase;
mod refusal;
mod server;
mod socket;
mod stall;
mod token;
mod traffic;
mod unix;

pub use auth::Access;
pub use confinement::Confinement;
pub use host::Hosts;
pub use listener::{BindError, Listener};
pub use peer::Peer;
pub use refusal::refusal;
pub use server::Server;
pub use token::{Token, TokenError};
pub use traffic::Traffic;
pub use unix::UnixError;
