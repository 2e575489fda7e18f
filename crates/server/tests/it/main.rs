//! The server as clients see it, with real sockets and real children, one folder for each part.
#![allow(unreachable_pub, reason = "nothing outside this program can reach anything")]
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod coder;
mod codex;
mod documented;
mod env_hook;
mod exec_server;
mod harness;
mod http;
mod listen;
mod mcp;
mod metrics;
mod page;
mod pages;
mod random;
mod tokens;
