//! The native API: one file for each verb, and for what all of them promise.

mod attach;
mod disconnect;
pub mod events;
mod follow;
mod forget;
mod keys;
mod lines;
mod many;
mod needs_input;
mod openapi;
mod output;
mod receipt;
mod refusals;
mod sandbox;
mod search;
mod slow_reader;
mod snapshots;
mod start;
mod stdin;
mod stop;
mod times;
mod wait;
