//! Gives the program the commit that it is built from, for `lastbyte --version`.
//!
//! The commit is that of the package if cargo packaged it, else that of the checkout. Without either, the
//! program has only its version. The same commit always gives the same program.
#![allow(clippy::disallowed_methods, reason = "git is not a command of lastbyte")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// What cargo writes into a package: JSON with the commit as `sha1`.
const PACKAGED: &str = ".cargo_vcs_info.json";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let details = if Path::new(PACKAGED).exists() { packaged() } else { checked_out() };
    let version = env!("CARGO_PKG_VERSION");
    let long =
        details.map_or_else(|| version.to_owned(), |details| format!("{version} ({details})"));
    println!("cargo::rustc-env=LASTBYTE_LONG_VERSION={long}");
}

/// The commit alone: a package has no date.
fn packaged() -> Option<String> {
    println!("cargo::rerun-if-changed={PACKAGED}");
    let text = std::fs::read_to_string(PACKAGED).ok()?;
    let commit = text.split_once("\"sha1\": \"")?.1.split('"').next()?;
    commit.get(..SHORT).map(str::to_owned)
}

/// As many characters of a commit as are shown: git's own choice depends on what else a clone has.
const SHORT: usize = 10;

/// The commit and its date.
fn checked_out() -> Option<String> {
    // These change when another commit is checked out, or one is made. In a worktree they are elsewhere.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let path = PathBuf::from(git(&["rev-parse", "--git-path", name])?);
        // Cargo runs this again each time if a file is missing.
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    let shown = git(&["log", "-1", "--date=format-local:%Y-%m-%d", "--format=%H %cd"])?;
    let (commit, date) = shown.split_once(' ')?;
    Some(format!("{} {date}", commit.get(..SHORT)?))
}

/// What git prints, or `None` if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).env("TZ", "UTC").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
