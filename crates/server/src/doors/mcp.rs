//! The door for agents: the Model Context Protocol at `/mcp`, by streamable HTTP.
//!
//! Seven tools over the verbs; `docs/mcp.md` describes them. The protocol itself, in its versions with
//! and without a handshake, is rmcp's; a request is answered from what it carries, so the door keeps
//! nothing between two of them but which cancelled calls have left a process running (`abandoned`).
//!
//! `routes` and `client` turn an HTTP request into a client with a session, `handler` turns a tool call
//! into one of `exec`, `write`, `wait`, `read`, `search`, `list` and `stop`. `args` are their arguments,
//! `tools` what is published of them, `facts` and `reply` what their answers are made of, `errors` and
//! `invalid` what is said when there is none.

mod abandoned;
mod args;
mod call;
mod client;
mod errors;
mod exec;
mod facts;
#[cfg(test)]
mod fuzz;
mod handler;
mod invalid;
mod list;
mod read;
mod reply;
mod routes;
mod search;
mod stop;
mod tools;
mod wait;
mod write;

pub use routes::{offered, router};
