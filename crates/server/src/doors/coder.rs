//! The door for clients of Coder's workspace agent: `/api/v0/processes`.
//!
//! After JSON parsing its answers equal the agent's, including the order of members;
//! `docs/compat-coder.md` lists the intended differences. `routes` calls `start`, `list`, `output` and
//! `signal`; `request`, `chat` and `launch` are what these read and start. What is
//! special to Go has its own files: `path` (escapes), `json_in` and `go_quote`.

mod answer;
mod chat;
mod go_quote;
mod json_in;
mod launch;
mod list;
mod output;
mod path;
mod request;
mod routes;
mod signal;
mod start;

pub use routes::{offered, router};
