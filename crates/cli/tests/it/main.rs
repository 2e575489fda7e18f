//! The program as its users run it, one file for each thing it promises.
#![allow(unreachable_pub, reason = "nothing outside this program can reach anything")]
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod app_server;
mod background;
mod broken_pipe;
mod doctor;
mod environment;
mod exit_codes;
mod harness;
mod help;
mod hygiene;
mod report;
mod signals;
mod state;
mod stdin;
mod streams;
mod timeouts;
mod tty;
mod usage;
