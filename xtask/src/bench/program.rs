//! Builds `lastbyte`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Builds it as packages do and returns its path.
pub(crate) fn lastbyte() -> Result<PathBuf> {
    of_dist("lastbyte-cli", "lastbyte")
}

/// Builds `testchild` in the same way.
pub(crate) fn testchild() -> Result<PathBuf> {
    of_dist("lastbyte-testkit", "testchild")
}

/// A copy of this program uses the copies beside it: another user can build nothing here.
fn of_dist(package: &str, name: &str) -> Result<PathBuf> {
    let this = std::env::current_exe()?;
    let is_copy = !this.with_file_name("deps").exists();
    let beside = this.with_file_name(name);
    if is_copy && beside.exists() {
        return Ok(beside);
    }
    build(&["--profile", "dist", "--package", package], &format!("dist/{name}"))
}

/// Builds it as `./test` does and returns its path.
pub(crate) fn lastbyte_for_tests() -> Result<PathBuf> {
    build(&["--workspace", "--bins"], "debug/lastbyte")
}

fn build(what: &[&str], path: &str) -> Result<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = Command::new("cargo")
        .args(["build", "--quiet"])
        .args(what)
        .current_dir(workspace)
        .status()?;
    ensure!(built.success(), "cannot build lastbyte");
    let this = std::env::current_exe()?;
    let target = this.ancestors().nth(2).context("this program is not in a target folder")?;
    Ok(target.join(path))
}
