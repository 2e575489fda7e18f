//! `lastbyte --version` says what the program was built from.

use std::process::Command;

use crate::harness::{Fixture, finish};

const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
#[expect(clippy::disallowed_methods, reason = "git is not a command of lastbyte")]
fn it_prints_the_version_the_commit_and_its_date() {
    let long = finish(Fixture::new().lastbyte(&["--version"]));
    assert_eq!((long.code, long.stderr.as_str()), (Some(0), ""));
    // The commit of the checkout; in a copy of the tree without one, the program may have been built elsewhere.
    let shown = Command::new("git").args(["log", "-1", "--format=%H %cs"]).output();
    let shown = shown.ok().filter(|shown| shown.status.success());
    let Some(shown) = shown.and_then(|shown| String::from_utf8(shown.stdout).ok()) else {
        assert!(long.stdout.starts_with(&format!("lastbyte {VERSION}")), "{}", long.stdout);
        return;
    };
    let (commit, date) = shown.trim().split_once(' ').unwrap();
    // Whether the sources are modified is not the same for all who run this.
    let stdout = long.stdout.replace(", modified)", ")");
    assert_eq!(stdout, format!("lastbyte {VERSION} ({} {date})\n", &commit[..10]));
}

#[test]
fn the_short_flag_prints_the_version_alone() {
    let short = finish(Fixture::new().lastbyte(&["-V"]));
    assert_eq!((short.code, short.stdout), (Some(0), format!("lastbyte {VERSION}\n")));
}
