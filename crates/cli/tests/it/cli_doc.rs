//! docs/cli.md has the help of every command, unchanged, of a program with all features.

use lastbyte_testkit::not_run;

use crate::harness::{Fixture, finish};

const PAGE: &str = include_str!("../../../../docs/cli.md");

#[test]
fn the_page_has_the_help_of_every_command() {
    if cfg!(not(feature = "fleet")) {
        return not_run("a comparison with docs/cli.md: built without the feature fleet");
    }
    let finished = finish(Fixture::new().lastbyte(&["cli-doc"]));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    let differs = PAGE.lines().zip(finished.stdout.lines()).find(|(page, help)| page != help);
    assert!(
        PAGE == finished.stdout,
        "run `cargo xtask cli-doc`; the first difference: {differs:?}"
    );
}

#[test]
fn the_page_is_up_to_date() {
    if cfg!(not(feature = "fleet")) {
        return not_run("a comparison with docs/cli.md: built without the feature fleet");
    }
    for command in ["serve", "ps", "logs"] {
        let help = finish(Fixture::new().lastbyte(&[command, "--help"])).stdout;
        let help: String = help.lines().map(|line| format!("{}\n", line.trim_end())).collect();
        assert!(PAGE.contains(&help), "lastbyte {command} --help");
    }
}
