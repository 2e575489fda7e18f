//! The benchmarks by name.

use anyhow::{Result, bail};

use super::{
    coder, codex, copy, curves, fairness, history, http, idle, keeper, limits, many, masking, mcp,
    neglect, overload, sandbox, spawn, tree, volume,
};

type Benchmark = (&'static str, fn() -> Result<()>);

const ALL: [Benchmark; 17] = [
    ("spawn", spawn::run),
    ("copy", copy::run),
    ("masking", masking::run),
    ("idle", idle::run),
    ("fairness", fairness::run),
    ("tree", tree::run),
    ("sandbox", sandbox::run),
    ("limits", limits::run),
    ("http", http::run),
    ("history", history::run),
    ("neglect", neglect::run),
    ("overload", overload::run),
    ("coder", coder::run),
    ("codex", codex::run),
    ("keeper", keeper::run),
    ("many", many::run),
    ("mcp", mcp::run),
];

/// Only by name: each takes many minutes.
const LONG: [Benchmark; 2] = [("curves", curves::run), ("volume", volume::run)];

/// Runs the named benchmarks, or all but the long ones.
pub(crate) fn run(names: &[String]) -> Result<()> {
    // As our programs do, before the first thread.
    lastbyte_sys::own_signals::prepare_for_children();
    if names.is_empty() {
        return ALL.iter().try_for_each(|(_, run)| run());
    }
    names.iter().try_for_each(|name| {
        let mut known = ALL.iter().chain(&LONG);
        match known.find(|(known, _)| known == name) {
            Some((_, run)) => run(),
            None => bail!("no benchmark {name:?}: choose from {}", names_of_all().join(", ")),
        }
    })
}

fn names_of_all() -> Vec<&'static str> {
    ALL.iter().chain(&LONG).map(|(name, _)| *name).collect()
}
