//! The door for agents over real HTTP: one file for each tool, and for what all of them promise.

mod client;
mod exec;
mod limits;
mod output;
mod protocol;
mod sessions;
mod wait;
mod write;
