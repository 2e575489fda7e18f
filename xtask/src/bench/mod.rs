//! `cargo xtask bench`: measures lastbyte, compared with a floor in the same run.
//!
//! The machines are noisy, so no time is asserted: a figure is a ratio of two medians whose samples
//! were taken in turn.
#![expect(clippy::print_stdout, reason = "prints figures")]
#![expect(clippy::disallowed_methods, reason = "the floor uses std")]

mod choose;
mod coder;
pub(crate) mod codex;
mod copy;
mod cost;
mod curves;
pub(crate) mod daemon;
mod fairness;
mod history;
mod http;
mod idle;
mod keeper;
mod limits;
mod many;
mod masking;
mod mcp;
mod neglect;
mod overload;
pub(crate) mod program;
pub(crate) mod samples;
mod sandbox;
mod spawn;
mod tree;
mod usage;
mod volume;
pub(crate) mod wire;

pub(crate) use choose::run;
pub(crate) use codex::encode_and_write;
pub(crate) use cost::cost;
pub(crate) use daemon::empty_route;
pub(crate) use keeper::write_and_time;
