use std::fs::File;

use crate::daemon::Daemon;
use crate::harness::{Fixture, finish};

/// A device that is always full.
fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

#[test]
fn every_command_fails_if_its_result_cannot_be_written() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--stdin-open"], "hold");
    daemon.fixture.anchor.wait_for(1);
    for arguments in [
        ["ps"].as_slice(),
        &["ps", "--json"],
        &["show", &id],
        &["show", &id, "--json"],
        &["wait", &id, "--timeout", "1ms", "--json"],
        &["write", &id, "text", "--json"],
        &["signal", &id, "CONT"],
        &["signal", &id, "CONT", "--json"],
        &["stop", &id],
        &["stop", &id, "--json"],
        &["logs", &id, "--json"],
        &["forget", &id, "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["shutdown", "--json"],
    ] {
        let mut command = daemon.lastbyte(arguments);
        command.stdout(full());
        let finished = finish(command);
        assert_eq!(finished.code, Some(125), "{arguments:?}: {finished:?}");
        let want = "lastbyte: cannot write to standard output: No space left on device";
        assert!(finished.stderr.starts_with(want), "{arguments:?}: {finished:?}");
    }
}

#[test]
fn a_start_whose_id_cannot_be_written_reports_it_on_standard_error() {
    let daemon = Daemon::start();
    for options in [["start", "true"].as_slice(), &["start", "--json", "true"]] {
        let mut command = daemon.lastbyte(options);
        command.stdout(full());
        let finished = finish(command);
        let id = daemon.result(&["ps", "--json"]);
        let id: serde_json::Value = serde_json::from_str(id.lines().next().unwrap()).unwrap();
        let want = format!(
            "lastbyte: process {} was started: cannot write to standard output: No space left on \
             device (os error 28)\n",
            id["id"].as_str().unwrap()
        );
        assert!(finished.stderr.starts_with(&want), "{finished:?}");
        assert_eq!(finished.code, Some(125), "{finished:?}");
    }
}

#[test]
fn a_result_that_nobody_reads_is_not_an_error() {
    let script = r#"{ "$LASTBYTE" doctor; echo $? >&2; } | true"#;
    assert_eq!(finish(Fixture::new().shell(script)).stderr, "0\n");
}
