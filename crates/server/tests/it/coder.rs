//! The API for clients of Coder's agent.

mod bodies;
mod client;
mod ending;
mod isolation;
mod keys;
mod list;
mod notice;
mod paths;
mod race;
mod sandbox;
mod signal;
mod start;
mod tokens;
