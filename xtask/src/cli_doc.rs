//! Writes docs/cli.md, which the program makes of its own help; a test of `cli` compares the two.
#![expect(clippy::disallowed_methods, reason = "cargo runs the program")]

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

pub(crate) fn write() -> anyhow::Result<()> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--package", "lastbyte-cli", "--", "cli-doc"]);
    cargo.current_dir(&workspace);
    let made = cargo.output().context("cannot run cargo")?;
    let said = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "the program did not write the page: {said}");
    let path = workspace.join("docs/cli.md");
    fs::write(&path, made.stdout).with_context(|| format!("cannot write {}", path.display()))
}
