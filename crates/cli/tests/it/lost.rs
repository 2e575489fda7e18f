//! A process whose server was killed: nothing about its end is made up.

use serde_json::{Value, json};

use crate::daemon::Daemon;

const WHY: &str = "the server ended before the process did";

/// A process that has printed `x` and outlives its server, and its pid.
fn outlived(daemon: &mut Daemon) -> (String, u32) {
    let id = daemon.testchild(&[], "print x then hold");
    daemon.result(&["wait", &id, "--output-past", "0"]);
    let [pid] = daemon.fixture.anchor.wait_for(1)[..] else { panic!("one is started") };
    daemon.kill();
    daemon.start_again();
    (id, pid)
}

fn shown(daemon: &Daemon, id: &str) -> Value {
    serde_json::from_str(&daemon.result(&["show", id, "--json"])).unwrap()
}

#[test]
fn a_process_that_outlives_its_server_is_shown_as_lost_and_not_as_ended() {
    let mut daemon = Daemon::start();
    let (id, pid) = outlived(&mut daemon);
    let process = shown(&daemon, &id);
    let ending = &process["ending"];
    assert_eq!(process["phase"], "lost");
    let want = json!({
        "status": { "kind": "lost", "why": WHY, "running_pid": pid },
        "final_len": 1,
        "times": {
            "started_unix_ns": process["started_unix_ns"],
            "found_unix_ns": ending["times"]["found_unix_ns"].as_u64().unwrap(),
        },
    });
    assert_eq!(*ending, want);
    let text = format!("lost: {WHY}; it may still run as pid {pid}");
    let page = daemon.result(&["show", &id]);
    assert!(page.contains(&format!("phase      lost\nending     {text}\noutput ")), "{page}");
    let list = daemon.result(&["ps", "--phase", "lost"]);
    assert!(list.contains(&format!("lost   may run as pid {pid}  1 B")), "{list}");
    assert!(!daemon.finish(&["ps", "--phase", "ended"]).stdout.contains(&id[28..]));
    daemon.check(&["wait", &id], 125, "", &format!("lastbyte: {text}\n"));
    daemon.check(&["wait", &id, "--pattern", "y"], 1, "", &format!("lastbyte: {text}\n"));
    let more = format!("lastbyte: {text}; there may have been more output\n");
    for options in [&[][..], &["-f"], &["--tail", "9"]] {
        daemon.check(&[&["logs", &id], options].concat(), 0, "x", &more);
    }
    let stamped = daemon.finish(&["logs", &id, "--timestamps"]);
    assert_eq!(stamped.stderr, more);
}

#[test]
fn a_lost_process_that_ends_is_not_said_to_run() {
    let mut daemon = Daemon::start();
    let (id, _) = outlived(&mut daemon);
    daemon.result(&["stop", &id]);
    daemon.fixture.anchor.wait_for_at_most(0);
    assert_eq!(shown(&daemon, &id)["ending"]["status"], json!({ "kind": "lost", "why": WHY }));
    daemon.check(&["wait", &id], 125, "", &format!("lastbyte: lost: {WHY}\n"));
    let list = daemon.result(&["ps"]);
    assert!(list.contains("lost   unknown  1 B"), "{list}");
}

#[test]
fn a_lost_process_that_runs_is_forgotten_only_once_it_is_stopped() {
    let mut daemon = Daemon::start();
    let (id, _) = outlived(&mut daemon);
    let end = &id[28..];
    let refused = format!(
        "lastbyte: the process {id} has not ended; `lastbyte forget --stop {end}` stops it first\n"
    );
    daemon.check(&["forget", &id], 125, "", &refused);
    assert_eq!(shown(&daemon, &id)["phase"], "lost");
    daemon.result(&["forget", "--stop", &id]);
    daemon.fixture.anchor.wait_for_at_most(0);
    assert_eq!(daemon.result(&["ps", "--json"]), "");
}
