//! The Codex API, one file for each promise.

mod burst;
pub mod client;
mod closing;
mod control;
mod drain;
mod exec;
pub mod fixture;
mod fuzz;
mod hostile;
mod process;
mod protocol;
mod sandbox;
mod slow_client;
mod stdin;
mod streaming;
mod transport;
mod tree;
mod validation;
mod websocket;
