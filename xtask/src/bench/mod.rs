//! `cargo xtask bench`: what the promises cost, each against a floor taken in the same run.
//!
//! The machines these run on are noisy, so nothing here asserts a time: a figure is a ratio of
//! two medians whose samples were taken in turn.
#![expect(clippy::print_stdout, reason = "figures are the result")]
#![expect(clippy::disallowed_methods, reason = "the floor is what std does")]

mod coder;
mod codex;
mod copy;
mod cost;
mod daemon;
mod fairness;
mod http;
mod idle;
mod neglect;
mod program;
mod samples;
mod sandbox;
mod spawn;
mod tree;
mod wire;

use anyhow::{Result, bail};

pub(crate) use codex::encode_and_write;
pub(crate) use daemon::empty_route;

/// Runs the named benchmarks, or all.
pub(crate) fn run(names: &[String]) -> Result<()> {
    let all = [
        "spawn", "copy", "idle", "fairness", "tree", "sandbox", "http", "neglect", "coder", "codex",
    ];
    let chosen: Vec<&str> = match names {
        [] => all.to_vec(),
        names => names.iter().map(String::as_str).collect(),
    };
    for name in chosen {
        match name {
            "spawn" => spawn::run()?,
            "copy" => copy::run()?,
            "idle" => idle::run()?,
            "fairness" => fairness::run()?,
            "tree" => tree::run()?,
            "sandbox" => sandbox::run()?,
            "http" => http::run()?,
            "neglect" => neglect::run()?,
            "coder" => coder::run()?,
            "codex" => codex::run()?,
            other => bail!("there is no benchmark {other:?}: there are {}", all.join(", ")),
        }
    }
    Ok(())
}
