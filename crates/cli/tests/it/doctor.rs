//! `lastbyte doctor`.

use std::path::Path;

use lastbyte_testkit::eventually;
use serde_json::json;

use crate::daemon::{Daemon, Home};
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

/// In KiB, as `du` says, which asks the kernel.
fn disk_usage(fixture: &Fixture, path: &Path) -> u64 {
    let mut du = fixture.program("du");
    du.arg("-sk").arg(path);
    let told = finish(du).stdout;
    told.split_whitespace().next().unwrap().parse().unwrap()
}

fn storage(daemon: &Daemon) -> serde_json::Value {
    let finished = daemon.finish(&["doctor", "--json"]);
    serde_json::from_str::<serde_json::Value>(&finished.stdout).expect("JSON")["storage"].clone()
}

#[test]
fn it_says_what_is_kept_on_disk_and_the_limits_of_the_server() {
    let daemon = Daemon::with(&["--keep-per-session", "7", "--keep-at-most", "36h"]);
    for actions in ["write-bytes 3000000", "write-bytes 100000", "print short"] {
        let id = daemon.testchild(&[], actions);
        daemon.result(&["wait", &id]);
    }
    let state = daemon.fixture.home.path().join("state/lastbyte");
    let places = [
        ("bytes", state.clone()),
        ("output_bytes", state.join("logs")),
        ("journal_bytes", state.join("journal")),
    ];
    // A server may write something in between.
    eventually("it says what du says", || {
        let found = storage(&daemon);
        let kib = |member: &str| found[member].as_u64().unwrap().div_ceil(1024);
        places.iter().all(|(member, path)| kib(member) == disk_usage(&daemon.fixture, path))
    });
    let found = storage(&daemon);
    assert_eq!(found["state"], state.to_str().unwrap());
    let output = found["output_bytes"].as_u64().unwrap();
    assert!((3_100_000..3_300_000).contains(&output), "{output} of 3100000 bytes");
    let disk = rustix::fs::statvfs(&state).unwrap();
    let free = disk.f_bavail * disk.f_frsize;
    assert!(found["free_bytes"].as_u64().unwrap().abs_diff(free) < 1 << 30, "{found}");
    assert_eq!(found["processes"], 3);
    let retention = json!({
        "at_least_ms": 600_000,
        "at_most_ms": 36 * 3_600_000,
        "per_session": 7,
        "processes": 10_000,
        "output_bytes": 2_u64 << 30,
    });
    assert_eq!(found["retention"], retention);
    let told = daemon.result(&["doctor"]);
    let want = "Ended processes are kept for 10m to 36h: at most 7 of each session, 10000 in all, and \
                2.0 GiB of output.\n";
    assert!(told.contains(want), "{told}");
}

#[test]
fn without_a_server_it_reads_the_journal_and_the_settings() {
    let mut daemon = Daemon::with(&["--keep-per-session", "7"]);
    let forgotten = daemon.testchild(&[], "exit 0");
    daemon.testchild(&[], "print kept");
    daemon.result(&["wait", "last"]);
    daemon.result(&["wait", &forgotten]);
    daemon.result(&["forget", &forgotten]);
    daemon.kill();
    let mut doctor = daemon.lastbyte(&["doctor", "--json"]);
    doctor.env("LASTBYTE_KEEP_PER_SESSION", "5").env("LASTBYTE_KEEP_AT_LEAST", "1s");
    let json: serde_json::Value = serde_json::from_str(&finish(doctor).stdout).expect("JSON");
    assert_eq!(json["storage"]["processes"], 1);
    let retention = &json["storage"]["retention"];
    assert_eq!([&retention["per_session"], &retention["at_least_ms"]], [5, 1000]);
}
