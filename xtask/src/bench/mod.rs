//! `cargo xtask bench`: measures lastbyte, compared with a floor in the same run.
//!
//! The machines are noisy, so no time is asserted: a figure is a ratio of two medians whose samples
//! were taken in turn.
#![expect(clippy::print_stdout, reason = "prints figures")]
#![expect(clippy::disallowed_methods, reason = "the floor uses std")]

mod coder;
pub(crate) mod codex;
mod copy;
mod cost;
pub(crate) mod daemon;
mod fairness;
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
pub(crate) mod wire;

use anyhow::{Result, bail};

pub(crate) use codex::encode_and_write;
pub(crate) use cost::cost;
pub(crate) use daemon::empty_route;
pub(crate) use keeper::write_and_time;

type Benchmark = (&'static str, fn() -> Result<()>);

const ALL: [Benchmark; 16] = [
    ("spawn", spawn::run),
    ("copy", copy::run),
    ("masking", masking::run),
    ("idle", idle::run),
    ("fairness", fairness::run),
    ("tree", tree::run),
    ("sandbox", sandbox::run),
    ("limits", limits::run),
    ("http", http::run),
    ("neglect", neglect::run),
    ("overload", overload::run),
    ("coder", coder::run),
    ("codex", codex::run),
    ("keeper", keeper::run),
    ("many", many::run),
    ("mcp", mcp::run),
];

/// Runs the named benchmarks, or all.
pub(crate) fn run(names: &[String]) -> Result<()> {
    // As our programs do, before the first thread.
    lastbyte_sys::own_signals::prepare_for_children();
    if names.is_empty() {
        return ALL.iter().try_for_each(|(_, run)| run());
    }
    names.iter().try_for_each(|name| match ALL.iter().find(|(known, _)| known == name) {
        Some((_, run)) => run(),
        None => {
            bail!("no benchmark {name:?}: choose from {}", ALL.map(|(name, _)| name).join(", "))
        }
    })
}
