//! The server as its clients meet it, with real sockets and real children.
#![allow(unreachable_pub, reason = "nothing outside this program can reach anything")]
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod coder;
mod env_hook;
mod events;
mod forget;
mod harness;
mod keys;
mod listen;
mod output;
mod refusals;
mod slow_reader;
mod snapshots;
mod start;
mod stdin;
mod stop;
mod wait;
