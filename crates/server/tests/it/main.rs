//! The doors over real sockets, with real children.
#![allow(unreachable_pub, reason = "nothing outside this program can reach anything")]
#![expect(clippy::unwrap_used, reason = "a failure in a test's own plumbing fails the test")]

mod codex;
mod events;
mod forget;
mod harness;
mod keys;
mod output;
mod refusals;
mod slow_reader;
mod snapshots;
mod start;
mod stdin;
mod stop;
mod wait;
