//! The Codex door: `command/exec` and `process/*` as the app-server of Codex offers them.
//!
//! A connection is one client. It has its own process ids, and what it started ends with it.
//!
//! ```text
//!  client ─▶ transport ─▶ Connection ─▶ lane of a process id ─▶ Process
//!    ▲                                       │ follows the log by cursor
//!    └────── transport ◀── Outbox ◀──────────┘
//! ```
//!
//! The connection owns the table of ids; a lane owns what belongs to one command and takes its
//! requests one after the other. Nothing here reads a pipe, keeps a timer or kills: that is the
//! engine's. docs/compat-codex.md has what is equal to Codex and what is not.

mod base64;
mod capture;
mod closing;
mod connection;
mod door;
mod ended;
mod envelope;
mod family;
mod fault;
mod following;
mod intake;
mod lane;
mod launching;
mod login_shell;
mod methods;
mod outbox;
mod outcome;
mod routes;
mod running;
mod sandbox;
mod transport;
mod unwinding;

pub use door::{Door, Settings, Streaming};
pub use routes::{route, router};
pub use sandbox::{AbsolutePath, NetworkAccess, SandboxPolicy};
pub use transport::{MOST_MESSAGE_BYTES, lines};
