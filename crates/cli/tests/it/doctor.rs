//! `lastbyte doctor`.

use crate::daemon::Home;
use crate::harness::{Fixture, finish};

fn doctor(fixture: &Fixture, arguments: &[&str]) -> std::process::Command {
    let mut command = fixture.lastbyte(&["doctor"]);
    command.args(arguments);
    command
}

#[test]
fn it_reports_that_commands_can_run_here() {
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
fn it_fails_if_there_are_too_few_descriptors_for_a_command() {
    let fixture = Fixture::new();
    for (limit, code) in [("12", 1), ("30", 0)] {
        let script = format!(r#"ulimit -n {limit}; "$LASTBYTE" run true"#);
        let ran = finish(fixture.shell(&script)).code;
        assert_eq!(ran == Some(0), code == 0, "{limit}");
        let script = format!(r#"ulimit -n {limit}; exec "$LASTBYTE" doctor"#);
        let finished = finish(fixture.shell(&script));
        assert_eq!(finished.code, Some(code), "{finished:?}");
    }
}

#[test]
fn it_says_where_output_was_set_aside() {
    let fixture = Fixture::new();
    let folder = fixture.home.path().join("state/lastbyte/set-aside-1700000000");
    std::fs::create_dir_all(&folder).unwrap();
    let folder = folder.to_str().unwrap();
    let told = finish(doctor(&fixture, &[])).stdout;
    let want =
        format!("Output that the server's journal does not name was set aside in {folder}.\n");
    assert!(told.contains(&want), "{told}");
    let json = finish(doctor(&fixture, &["--json"])).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["set_aside"], serde_json::json!([folder]));
}

#[test]
fn it_reports_the_same_as_json() {
    let fixture = Fixture::new();
    let finished = finish(doctor(&fixture, &["--json"]));
    let json: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let findings = json["findings"].as_array().expect("a list");
    assert!(findings.iter().all(|finding| finding["meaning"].is_string()));
    let pidfd = findings.iter().find(|finding| finding["name"] == "pidfd").expect("there");
    assert_eq!(pidfd["verdict"], "yes");
    assert!(json["stops_by"] == "leaf" || json["stops_by"] == "scan");
}

/// `run --sandbox` works if doctor says so, and is refused otherwise.
#[test]
fn it_says_whether_commands_can_be_sandboxed() {
    let fixture = Fixture::new();
    let finished = finish(doctor(&fixture, &["--json"]));
    let json: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
    let code = finish(fixture.run(&["--sandbox", "read-only", "true"])).code;
    let want = if json["sandboxes_by"].is_string() { 0 } else { 125 };
    assert_eq!(code, Some(want), "{json}");
}

/// Few descriptors allow few commands: the number depends on the limits that a server has, which raises
/// its own as far as it may.
#[test]
fn it_counts_how_many_commands_can_run_at_once() {
    let most = |limits: &str| {
        let script = format!("{limits}; exec $LASTBYTE doctor --json");
        let finished = finish(Fixture::new().shell(&script));
        let json: serde_json::Value = serde_json::from_str(&finished.stdout).expect("JSON");
        json["most_processes"].clone()
    };
    assert_eq!(most("ulimit -n 300"), 86);
    assert_eq!(most("ulimit -S -n 100; ulimit -H -n 300"), 86);
}

/// As many as it says can run, and clients are still answered.
#[test]
fn as_many_commands_can_run_as_it_says() {
    let home = Home::new();
    let script = r#"ulimit -n 100
        "$LASTBYTE" doctor | sed -n 's/^About \([0-9]*\) .*/\1/p' >most
        i=0; while [ $i -lt $(cat most) ]; do
            "$LASTBYTE" start -- "$TESTCHILD" hold || exit 1
            i=$((i + 1))
        done
        "$LASTBYTE" ps >/dev/null && cat most"#;
    let mut command = home.fixture.shell(script);
    command.current_dir(home.fixture.home.path());
    let finished = finish(command);
    assert!(finished.stdout.ends_with("\n20\n"), "{finished:?}");
    assert_eq!(home.fixture.anchor.wait_for(20).len(), 20);
}

#[test]
fn the_summary_comes_first() {
    let told = finish(doctor(&Fixture::new(), &[])).stdout;
    let place = |what: &str| told.find(what).unwrap_or_else(|| panic!("{what} in {told}"));
    assert_eq!(place("Commands can run here.\n"), 0);
    assert!(place("A stop ") < place("What was checked"), "{told}");
    assert!(place("What was checked") < place("pidfd"), "{told}");
}
