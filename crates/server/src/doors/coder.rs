//! The door for clients of Coder's workspace agent: `/api/v0/processes`.
//!
//! Its answers are the agent's after JSON parsing, the order of members included; where they are
//! not, on purpose, `docs/compat-coder.md` says so. Everything that is Go's and not HTTP's has a
//! file of its own: how paths and queries are unescaped, JSON is taken and written, text is quoted.

mod answer;
mod chat;
mod go_quote;
mod json_in;
mod json_out;
mod launch;
mod list;
mod output;
mod path;
mod query;
mod request;
mod routes;
mod signal;
mod start;

pub use routes::router;
