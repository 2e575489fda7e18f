//! The program as its users run it, one file for each thing it promises.
#![allow(unreachable_pub, reason = "nothing outside this program can reach anything")]
#![allow(clippy::unwrap_used, reason = "a test that cannot unwrap has failed")]

mod api_doc;
mod app_server;
mod background;
mod bare_daemon;
mod broken_pipe;
mod colour;
mod config;
mod crash;
mod daemon;
mod doctor;
mod environment;
mod events;
mod exit_codes;
mod first_use;
mod forget;
mod full_disk;
mod harness;
mod help;
mod hygiene;
mod ids;
mod logs;
mod no_server;
mod port;
mod ps;
mod readme;
mod report;
mod sandbox;
mod serve;
mod serve_stop;
mod show;
mod shutdown;
mod signal;
mod signals;
mod start;
mod state;
mod stdin;
mod stop;
mod streams;
mod timeouts;
mod tty;
mod usage;
mod wait;
mod write;
