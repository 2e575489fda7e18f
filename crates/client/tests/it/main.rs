//! The client against a server that follows a script, including mistakes.
#![allow(unreachable_pub, reason = "nothing outside this program can reach anything")]
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod attach;
mod connections;
mod errors;
mod events;
mod follow;
mod outage;
mod requests;
mod server;
