//! Tests that are not run are reported in the file that `./test` reads.
#![expect(clippy::disallowed_methods, reason = "runs this test again with another environment")]
#![expect(clippy::unwrap_used, reason = "a failure in a test's own plumbing fails the test")]

use std::path::Path;
use std::process::{Command, ExitStatus};

/// Runs this program again, as `./test` does, with only the test that is not run.
fn run_again(not_run_file: &Path) -> ExitStatus {
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "a_test_that_is_not_run", "--nocapture"]);
    test.env("LASTBYTE_TEST_NOT_RUN", not_run_file).env("LASTBYTE_TEST_INSIDE", "1");
    test.env("NEXTEST_BINARY_ID", "crate::it").env("NEXTEST_TEST_NAME", "a_test_that_is_not_run");
    test.status().unwrap()
}

#[test]
fn a_test_that_is_not_run() {
    if std::env::var_os("LASTBYTE_TEST_INSIDE").is_some() {
        lastbyte_testkit::not_run("this machine has no such thing");
    }
}

#[test]
fn the_line_of_a_test_that_is_not_run_is_appended() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "not run: another\n").unwrap();
    assert!(run_again(file.path()).success());
    let line = "not run: crate::it a_test_that_is_not_run: this machine has no such thing";
    let collected = std::fs::read_to_string(file.path()).unwrap();
    assert_eq!(collected, format!("not run: another\n{line}\n"));
}

#[test]
fn a_line_that_cannot_be_appended_fails_the_test() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!run_again(&folder.path().join("missing")).success());
}
