//! The door for Codex agents: `process/*` and some of `fs/*` as Codex's exec-server offers them.
//!
//! A client has a session, which outlives its connection by 30 seconds. Every event of a process has a
//! number; output stays in the log and can be read again by these numbers.
//!
//! In the order of a process's life:
//! - `transport`: the routes, and a client on a pair of streams
//! - `connection`: one client; `door`: what all connections share; `sessions`, `session`: what a client
//!   has started
//! - `message`, `methods`: from a message to a call; `environment`: what is told of this machine
//! - `launch`, with `file_uri`, `env_policy` and `sandbox`: the parameters as a launch of the engine
//! - `process`: the task of one process, with `write_ids`
//! - `recorder`, `record`, `chunks`: its numbered events, and `denial`, the likely cause of a failure
//! - `push`, `read`: from there to the client
//! - `files`, `confined_files`: operations on files, also under a sandbox
//!
//! docs/compat-codex.md lists what is the same as in Codex and what differs.

mod chunks;
mod confined_files;
mod connection;
mod denial;
mod door;
mod env_policy;
mod environment;
mod file_uri;
mod files;
mod launch;
mod message;
mod methods;
mod process;
mod push;
mod read;
mod record;
mod recorder;
mod sandbox;
mod session;
mod sessions;
mod transport;
mod write_ids;

pub use confined_files::perform_file_request;
pub use door::{Door, Settings, Times};
pub use transport::{SecretPath, router, serve_lines};
