//! Gives the program the commit that it is built from, for `lastbyte --version`.
//!
//! The commit is that of the package if cargo packaged it, that of the archive if `git archive` made one, else that
//! of the checkout. Without any, the program has only its version. The same commit always gives the same program,
//! and sources that differ from it are called modified.
#![allow(clippy::disallowed_methods, reason = "git is not a command of lastbyte")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// What cargo writes into a package: JSON with the commit as `sha1`.
const PACKAGED: &str = ".cargo_vcs_info.json";
/// Where `git archive` writes the commit and its date, because of `.gitattributes`.
const ARCHIVED: &str = "archived-commit";
const TREE: &str = "../..";
/// What the program is made of, below `TREE`. A star stands for slashes, too.
const SOURCES: [&str; 7] = [
    "Cargo.lock",
    "Cargo.toml",
    "crates/*/*.json",
    "crates/*/Cargo.toml",
    "crates/*/build.rs",
    "crates/*/src/*",
    "crates/*/web/*",
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={ARCHIVED}");
    let details = if Path::new(PACKAGED).exists() {
        packaged()
    } else if Path::new(TREE).join(".git").exists() {
        checked_out()
    } else {
        // Not by git, which would find a repository around the archive.
        archived()
    };
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
    let modified = if text.contains("\"dirty\": true") { MODIFIED } else { "" };
    Some(format!("{}{modified}", commit.get(..SHORT)?))
}

/// The commit and its date, in an archive.
fn archived() -> Option<String> {
    let text = std::fs::read_to_string(ARCHIVED).ok()?;
    // In a checkout, the file has the fields that git fills in.
    let (commit, date) = text.trim().split_once(' ').filter(|_| !text.starts_with('$'))?;
    Some(format!("{} {date}", commit.get(..SHORT)?))
}

/// As many characters of a commit as are shown: git's own choice depends on what else a clone has.
const SHORT: usize = 10;
const MODIFIED: &str = ", modified";

/// The commit and its date, and whether the sources differ from it.
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
    let shown = git(&["log", "-1", "--format=%H %cs"])?;
    let (commit, date) = shown.split_once(' ')?;
    let modified = if is_modified()? { MODIFIED } else { "" };
    Some(format!("{} {date}{modified}", commit.get(..SHORT)?))
}

/// Whether a source is not as it is in the commit.
fn is_modified() -> Option<bool> {
    let listed = [&["-C", TREE, "ls-files", "-z", "--"][..], &SOURCES].concat();
    for file in git(&listed)?.split_terminator('\0') {
        println!("cargo::rerun-if-changed={TREE}/{file}");
    }
    let status = ["-C", TREE, "status", "--porcelain", "--"];
    Some(!git(&[&status[..], &SOURCES].concat())?.is_empty())
}

/// What git prints, or `None` if it fails.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
