//! Listening: sockets, connections and access, before a request is routed.
//!
//! ```text
//! listener ─▶ connection ─▶ gate: peer, host, origin, token ─▶ router
//!    bound        head, stall            refused with a reason
//! ```
//!
//! Nothing here knows a verb: it takes a router and hands it the admitted requests.
//! `listener` and `unix` accept, `server` and `traffic` limit connections, `connection` speaks HTTP,
//! `gate` calls the checks (`auth`, `confinement`, `host`, `origin`, `token`, `created_tokens`,
//! `failed_tokens`), which give a request its `scope`. `socket` has the
//! timeouts of a connection (`stall`, `half_closed`, `request_state`); `body`
//! collects request bodies. Every limit is in [`Limits`](crate::Limits).

mod auth;
pub mod body;
mod client_of;
mod confinement;
mod connection;
mod created_tokens;
mod failed_tokens;
#[cfg(test)]
mod fuzz;
mod gate;
mod half_closed;
mod host;
mod listener;
mod memory;
mod origin;
mod pages;
mod peer;
mod refusal;
mod request_state;
mod scope;
mod server;
mod socket;
mod stage;
mod stall;
mod token;
mod traffic;
mod unix;

pub use auth::{AcceptedTokens, Access};
pub use client_of::ClientOf;
pub use confinement::PeerConfinement;
pub use created_tokens::CreatedTokens;
pub use host::Hosts;
pub use listener::{BindError, Carried, Listener, bind_tcp};
pub use pages::{HandOver, PageTimes, Pages};
pub use peer::Peer;
pub use refusal::refusal;
pub use scope::{Grant, May, Needs, PageGrant, Scope};
pub use server::Server;
pub(crate) use token::random_text;
pub use token::{Token, TokenError};
pub(crate) use traffic::Kind;
pub use traffic::Traffic;
pub use unix::{SocketFile, UnixError};
