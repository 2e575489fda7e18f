use std::os::unix::net::UnixStream;

use lastbyte_testkit::{eventually, testchild};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::bare_daemon::{Daemon, answer, connect, get, log, post, serve};
use crate::harness::{Fixture, send};

/// A daemon, and a connection on which a helper with these actions was started. The helper
/// runs; the answer comes when the wait is over.
fn with_helper(fixture: &Fixture, actions: &str, wait: &Value) -> (Daemon, UnixStream) {
    let mut daemon = Daemon::start(serve(fixture, &[]));
    daemon.address();
    let mut command = vec![testchild().to_str().unwrap().to_owned()];
    command.extend(actions.split(' ').map(str::to_owned));
    let stop = json!({ "signal": "TERM", "grace_ms": 3_600_000 });
    let stream = connect(fixture);
    post(&stream, "/v1/processes", &json!({ "command": command, "stop": stop, "wait": wait }));
    fixture.anchor.wait_for(1);
    eventually("the daemon knows of it", || {
        let list = connect(fixture);
        get(&list, "/v1/processes");
        answer(list)["processes"].as_array().is_some_and(|all| !all.is_empty())
    });
    (daemon, stream)
}

#[test]
fn a_stop_signal_stops_all_commands_and_logs_the_result() {
    let fixture = Fixture::new();
    let actions = "setsid-background hold end then hold";
    let (daemon, stream) = with_helper(&fixture, actions, &Value::Null);
    let started = answer(stream);
    let id = started["process"]["id"].as_str().unwrap_or_else(|| panic!("{started}"));
    fixture.anchor.wait_for(2);
    let finished = daemon.stop(Signal::TERM);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    fixture.anchor.wait_for_at_most(0);
    let log = log(&finished.stderr);
    let of_it = |line: &&Value| line["message"] == "stopped" && line["id"] == id;
    let line = log.iter().find(of_it).unwrap_or_else(|| panic!("{log:?}"));
    assert_eq!((&line["signalled"], &line["gone"]), (&json!(2), &json!(2)), "{line}");
}

#[test]
fn waiters_are_answered_before_the_daemon_exits() {
    let fixture = Fixture::new();
    let actions = "trap 15 exit 7 then print ready then hold";
    let (daemon, waiting) = with_helper(&fixture, actions, &json!({ "exit": true }));
    assert_eq!(daemon.stop(Signal::INT).code, Some(0));
    let ended = answer(waiting);
    assert_eq!(ended["process"]["phase"], "ended", "{ended}");
}

#[test]
fn a_second_signal_kills_what_is_still_stopping() {
    let fixture = Fixture::new();
    let actions = "trap 15 print told then hold";
    let (daemon, _) = with_helper(&fixture, actions, &Value::Null);
    send(&daemon.child, Signal::TERM);
    let finished = daemon.stop(Signal::INT);
    assert!(matches!(finished.code, Some(130 | 143)), "{finished:?}");
    fixture.anchor.wait_for_at_most(0);
}

#[test]
fn a_client_can_shut_it_down() {
    let fixture = Fixture::new();
    let (mut daemon, _) = with_helper(&fixture, "hold", &Value::Null);
    let stream = connect(&fixture);
    post(&stream, "/v1/shutdown", &json!({}));
    answer(stream);
    assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
    fixture.anchor.wait_for_at_most(0);
}
