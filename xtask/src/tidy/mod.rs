//! Checks that the compiler does not do: the shape of the tree and of its documents.
//!
//! A check is a function from the [`Workspace`] to its violations, with a test that finds one. No
//! check changes a file. [`tree_size`] only counts.

mod adr;
mod code;
mod crates;
mod dependencies;
mod links;
mod manifests;
mod promises;
mod size;
mod sources;
mod versions;
mod workspace;

use std::process::ExitCode;

pub(crate) use size::tree_size;
use workspace::{Violation, Workspace};

const CHECKS: [fn(&Workspace) -> Vec<Violation>; 15] = [
    adr::numbered_and_listed,
    dependencies::each_has_a_reason,
    dependencies::each_is_used,
    crates::point_one_way,
    crates::use_only_permitted,
    links::resolve,
    manifests::inherit_lints,
    manifests::inherit_shared_values,
    manifests::lock_few_packages,
    promises::name_what_exists,
    sources::have_clear_names,
    sources::have_no_markers,
    sources::have_short_contents,
    sources::use_unsafe_only_in_sys,
    versions::agree,
];

/// Prints each violation, or how many checks passed.
#[expect(clippy::print_stdout, reason = "prints its result")]
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let workspace = Workspace::read()?;
    let violations: Vec<_> = CHECKS.iter().flat_map(|check| check(&workspace)).collect();
    for violation in &violations {
        println!("{violation}");
    }
    if violations.is_empty() {
        println!("tidy: {} checks passed", CHECKS.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!("tidy: {} to repair", violations.len());
    Ok(ExitCode::FAILURE)
}
