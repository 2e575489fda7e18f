//! The native door over real sockets, with real children.
#![expect(clippy::unwrap_used, reason = "a failure in a test's own plumbing fails the test")]

mod coder;
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
