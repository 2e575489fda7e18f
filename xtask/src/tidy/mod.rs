//! What a compiler does not check: the shape of the tree and of its documents.
//!
//! A check is a function from the [`Workspace`] to its violations, in a file of its own, with
//! tests that show a violation found. None of them changes a file.

mod dependencies;
mod direction;
mod lints;
mod locked;
mod permissions;
mod versions;
mod workspace;

use std::process::ExitCode;

use workspace::{Violation, Workspace};

const CHECKS: [fn(&Workspace) -> Vec<Violation>; 7] = [
    dependencies::each_has_a_reason,
    dependencies::each_is_used,
    direction::one_way,
    lints::are_the_workspaces,
    locked::are_few,
    permissions::are_kept,
    versions::stand_in_one_place,
];

/// Prints each violation, or how many checks passed.
#[expect(clippy::print_stdout, reason = "its result")]
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
