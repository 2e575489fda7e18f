//! What docs/api.md shows works as it stands.

use std::fmt::Write as _;

use crate::daemon::Daemon;
use crate::harness::{Finished, finish};

const PAGE: &str = include_str!("../../../../docs/api.md");

/// A block of the page: its kind and its text.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let inner = PAGE.split("```").skip(1).step_by(2);
    inner.map(|block| block.split_once('\n').unwrap()).collect()
}

#[test]
fn the_examples_of_the_api_print_what_is_shown() {
    let daemon = Daemon::start();
    let mut script = String::from("set -eu; cd \"$HOME\"\n");
    let mut expected: Vec<Vec<&str>> = Vec::new();
    for (kind, text) in blocks() {
        match kind {
            // The server is there already.
            "sh" if text.contains("lastbyte serve") => {}
            "sh" => {
                writeln!(script, "echo; echo '=== {}'\n{text}", expected.len()).unwrap();
                expected.push(Vec::new());
            }
            "json" | "text" => expected.last_mut().unwrap().extend(text.lines()),
            other => panic!("a block of kind {other:?}"),
        }
    }
    let mut bash = daemon.fixture.program("bash");
    bash.args(["-c", &script]).env("SOCKET", daemon.socket());
    let Finished { code, stdout, stderr } = finish(bash);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
    for (index, lines) in expected.iter().enumerate() {
        let printed = stdout.split(&format!("=== {index}\n")).nth(1).unwrap();
        let printed = printed.split("\n=== ").next().unwrap();
        for line in lines {
            assert!(printed.contains(line), "block {index} has no {line:?}:\n{printed}");
        }
    }
}
