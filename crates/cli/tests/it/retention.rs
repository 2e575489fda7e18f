//! What `serve --keep-…` keeps of ended processes.

use lastbyte_testkit::eventually;

use crate::daemon::Daemon;

/// Runs a `testchild` to its end; returns its id.
fn ended(daemon: &Daemon, options: &[&str], actions: &str) -> String {
    let id = daemon.testchild(options, actions);
    daemon.result(&["wait", &id]);
    id
}

/// The ids that the server knows, newest first.
fn known(daemon: &Daemon) -> Vec<String> {
    let lines = daemon.result(&["ps", "--json"]);
    let id = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].clone();
    lines.lines().map(|line| id(line).as_str().unwrap().to_owned()).collect()
}

#[test]
fn as_many_of_each_session_are_kept_as_the_server_is_told() {
    let daemon = Daemon::with(&["--keep-at-least", "0s", "--keep-per-session", "2"]);
    let other = ended(&daemon, &["--session", "other"], "exit 0");
    let mut own: Vec<_> = (0..3).map(|_| ended(&daemon, &[], "exit 0")).collect();
    own.reverse();
    let want = [&own[..2], &[other]].concat();
    eventually("the oldest of the larger session is forgotten", || known(&daemon) == want);
}

#[test]
fn no_more_are_kept_than_the_server_is_told_however_young() {
    let daemon = Daemon::with(&["--keep-processes", "2"]);
    let mut ids: Vec<_> = (0..4).map(|_| ended(&daemon, &[], "exit 0")).collect();
    ids.reverse();
    eventually("the oldest are forgotten", || known(&daemon) == ids[..2]);
}

#[test]
fn processes_are_kept_no_longer_than_the_server_is_told() {
    let daemon = Daemon::with(&["--keep-at-least", "0s", "--keep-at-most", "1ms"]);
    let first = daemon.testchild(&[], "exit 0");
    eventually("it is forgotten after another has ended", || {
        daemon.testchild(&[], "exit 0");
        !known(&daemon).contains(&first)
    });
}

#[test]
fn as_many_bytes_are_kept_as_the_server_is_told() {
    let daemon = Daemon::with(&["--keep-at-least", "0s", "--keep-bytes", "16MiB"]);
    let [first, second, third] = [(); 3].map(|()| ended(&daemon, &[], "write-bytes 7000000"));
    eventually("the oldest is forgotten", || known(&daemon) == [&*third, &*second]);
    assert!(!known(&daemon).contains(&first));
}

#[test]
fn a_minimum_above_the_maximum_is_refused() {
    let fixture = crate::harness::Fixture::new();
    let finished = crate::harness::finish(fixture.lastbyte(&["serve", "--keep-at-least", "25h"]));
    let want = "lastbyte: --keep-at-least (25h) is longer than --keep-at-most (24h)\n";
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(2), want));
}
