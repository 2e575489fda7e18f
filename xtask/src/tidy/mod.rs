//! What a compiler does not check: the shape of the tree and of its documents.
//!
//! A check is a function from the [`Workspace`] to its violations, in a file of its own, with
//! tests that show a violation found. None of them changes a file.

mod adr;
mod code;
mod dependencies;
mod direction;
mod file_names;
mod links;
mod lints;
mod locked;
mod markers;
mod permissions;
mod tables_of_contents;
mod unsafe_code;
mod versions;
mod workspace;

use std::process::ExitCode;

use workspace::{Violation, Workspace};

const CHECKS: [fn(&Workspace) -> Vec<Violation>; 13] = [
    adr::numbered_and_listed,
    dependencies::each_has_a_reason,
    dependencies::each_is_used,
    direction::one_way,
    file_names::say_what_is_inside,
    links::resolve,
    lints::are_the_workspaces,
    locked::are_few,
    markers::are_absent,
    permissions::are_kept,
    tables_of_contents::are_short,
    unsafe_code::is_in_sys_alone,
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
