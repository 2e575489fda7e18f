//! The examples in docs/howto work as written and print what the pages show.

use std::fmt::Write as _;
use std::path::Path;

use lastbyte_testkit::free_port;

use crate::daemon::Home;
use crate::harness::{Finished, LASTBYTE, finish};

/// The port of the server on one of the pages; only one server at a time can use it.
const PORT: &str = "17070";

/// The blocks of a page as one script, and the output expected of each.
fn script(page: &str) -> (String, Vec<Vec<&str>>) {
    let folder = Path::new(&*LASTBYTE).parent().unwrap().display();
    let mut script = format!("set -eu; PATH={folder}:$PATH; cd \"$HOME\"\n");
    let mut expected: Vec<Vec<&str>> = Vec::new();
    for block in page.split("```").skip(1).step_by(2) {
        match block.split_once('\n').unwrap() {
            ("sh", text) => {
                writeln!(script, "echo '=== {}'\n{text}", expected.len()).unwrap();
                expected.push(Vec::new());
            }
            ("text", text) => expected.last_mut().unwrap().extend(text.lines()),
            (other, _) => panic!("a block of kind {other:?}"),
        }
    }
    (script, expected)
}

/// Runs a page in a new home.
fn check(page: &str) {
    let home = Home::new();
    let (script, expected) = script(page);
    assert!(!expected.is_empty(), "no block of the page can be run");
    let mut bash = home.fixture.program("bash");
    bash.args(["-c", &script]);
    let Finished { code, stdout, stderr } = finish(bash);
    assert_eq!(code, Some(0), "{stdout}\n{stderr}");
    for (index, lines) in expected.iter().enumerate() {
        let printed = stdout.split(&format!("=== {index}\n")).nth(1).unwrap();
        let mut printed = printed.split("=== ").next().unwrap();
        for line in lines {
            let at = printed.find(line);
            let at = at.unwrap_or_else(|| panic!("block {index}: no {line:?} in {printed:?}"));
            printed = &printed[at + line.len()..];
        }
    }
}

#[test]
fn run_and_get_the_result() {
    check(include_str!("../../../../docs/howto/run-and-get-the-result.md"));
}

#[test]
fn start_a_server() {
    let page = include_str!("../../../../docs/howto/start-a-server.md");
    assert!(page.contains(PORT), "the page has another port");
    check(&page.replace(PORT, &free_port().to_string()));
}

#[test]
fn drive_an_interactive_program() {
    check(include_str!("../../../../docs/howto/drive-an-interactive-program.md"));
}

#[test]
fn follow_many_jobs() {
    check(include_str!("../../../../docs/howto/follow-many-jobs.md"));
}

#[test]
fn stop_for_sure() {
    check(include_str!("../../../../docs/howto/stop-for-sure.md"));
}

#[test]
fn upgrade_the_server() {
    check(include_str!("../../../../docs/howto/upgrade-the-server.md"));
}

#[test]
fn every_page_is_run() {
    // Tests run in the folder of their crate.
    let pages = std::fs::read_dir("../../docs/howto").unwrap().count();
    let run = include_str!("howto.rs").matches("include_str!(\"../../../../docs/howto/").count();
    assert_eq!(pages, run);
}
