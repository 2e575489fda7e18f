//! `lastbyte doctor`.

use crate::harness::{Fixture, finish};

fn doctor(fixture: &Fixture, arguments: &[&str]) -> std::process::Command {
    let mut command = fixture.program(env!("CARGO_BIN_EXE_lastbyte"));
    command.arg("doctor").args(arguments);
    command
}

#[test]
fn it_says_in_words_that_commands_can_be_run_here() {
    let fixture = Fixture::new();
    let finished = finish(doctor(&fixture, &[]));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    for what in
        ["pidfd", "clone3", "splice", "punch hole", "cgroup leaf", "landlock", "user sandbox"]
    {
        assert!(finished.stdout.contains(what), "{what} in {}", finished.stdout);
    }
    assert!(finished.stdout.contains("commands can run at once"), "{}", finished.stdout);
    assert!(fixture.folders().is_empty(), "and leaves nothing behind");
}

#[test]
fn it_says_the_same_as_json() {
    let fixture = Fixture::new();
    let finished = finish(doctor(&fixture, &["--json"]));
    let json: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let findings = json["findings"].as_array().expect("a list");
    assert!(findings.iter().all(|finding| finding["meaning"].is_string()));
    let pidfd = findings.iter().find(|finding| finding["name"] == "pidfd").expect("there");
    assert_eq!(pidfd["verdict"], "yes");
    assert!(json["stops_by"] == "leaf" || json["stops_by"] == "scan");
}

/// What it says can be done is what is done, and what it says cannot be is refused.
#[test]
fn it_says_whether_commands_can_be_sandboxed() {
    let fixture = Fixture::new();
    let finished = finish(doctor(&fixture, &["--json"]));
    let json: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let code = finish(fixture.run(&["--sandbox", "read-only", "true"])).code;
    let want = if json["sandboxes_by"].is_string() { 0 } else { 125 };
    assert_eq!(code, Some(want), "{json}");
}

/// With few descriptors there are few commands: the figure is of this machine, as it is now.
#[test]
fn it_counts_what_the_limit_is_enough_for() {
    let fixture = Fixture::new();
    let script = format!("ulimit -n 300; exec {} doctor --json", env!("CARGO_BIN_EXE_lastbyte"));
    let finished = finish(fixture.shell(&script));
    let json: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    assert_eq!(json["most_processes"], 100);
}
