//! What each death or shortage costs: the table in docs/crash.md.
#![expect(clippy::disallowed_methods, reason = "mounts are made around the server")]

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::Command;

use lastbyte_testkit::{eventually, inside, is_alive, is_stopped, pattern_bytes};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;

use crate::bare_daemon;
use crate::daemon::Daemon;
use crate::harness::{Fixture, finish};

fn pid(number: u32) -> Pid {
    Pid::from_raw(number.cast_signed()).unwrap()
}

fn kill(number: u32) {
    kill_process(pid(number), Signal::KILL).unwrap();
}

fn show(daemon: &Daemon, id: &str) -> Value {
    serde_json::from_str(&daemon.result(&["show", "--json", id])).unwrap()
}

/// What the server says of its keeper.
fn keeper(daemon: &Daemon) -> Value {
    let report = daemon.finish(&["doctor", "--json"]).stdout;
    serde_json::from_str::<Value>(&report).unwrap()["server"]["keeper"].clone()
}

/// A command that repeats its input.
fn start_cat(daemon: &Daemon) -> String {
    daemon.result(&["start", "--stdin-open", "--", "cat"]).trim().to_owned()
}

#[track_caller]
fn check_cat(daemon: &Daemon, id: &str, want: &str) {
    daemon.result(&["write", id, "--close"]);
    assert_eq!(daemon.finish(&["wait", id]).code, Some(0));
    assert_eq!(daemon.result(&["logs", id]), want);
    assert_eq!(show(daemon, id)["ending"]["kept"]["kind"], "whole");
}

#[test]
fn a_worker_that_is_stopped_goes_on_and_is_not_replaced() {
    let daemon = Daemon::start();
    let id = start_cat(&daemon);
    daemon.result(&["write", &id, "--line", "before"]);
    let worker = daemon.worker();
    kill_process(pid(worker), Signal::STOP).unwrap();
    eventually("it is stopped", || is_stopped(worker));
    let asking = crate::harness::start(daemon.lastbyte(&["write", &id, "--line", "meanwhile"]));
    kill_process(pid(worker), Signal::CONT).unwrap();
    assert!(asking.wait_with_output().unwrap().status.success());
    assert_eq!((daemon.worker(), &keeper(&daemon)["restarts"]), (worker, &0.into()));
    check_cat(&daemon, &id, "before\nmeanwhile\n");
}

#[test]
fn a_worker_without_memory_is_replaced_and_nothing_is_lost() {
    let daemon = Daemon::start();
    let id = start_cat(&daemon);
    daemon.result(&["write", &id, "--line", "before"]);
    let worker = daemon.worker();
    // Not a byte more than it has.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    prlimit(Some(pid(worker)), Resource::Data, none).unwrap();
    // A large body is refused; heads of requests are small, and their memory is not asked for twice.
    let fields: String = (0..60).map(|field| format!("x-{field}: {:y<900}\r\n", "")).collect();
    let head = format!("GET /v1/processes HTTP/1.1\r\nhost: localhost\r\n{fields}");
    let mut connections = Vec::new();
    while is_alive(worker) && connections.len() < 600 {
        let mut connection = UnixStream::connect(daemon.socket()).unwrap();
        // It may die before it has read all of it.
        _ = connection.write_all(head.as_bytes());
        connections.push(connection);
    }
    eventually("it dies", || !is_alive(worker));
    drop(connections);
    daemon.result(&["write", &id, "--line", "after"]);
    assert_eq!(keeper(&daemon)["last_crash"], "was killed by SIGABRT");
    check_cat(&daemon, &id, "before\nafter\n");
}

#[test]
fn a_stand_in_that_is_killed_is_replaced_and_nothing_is_lost() {
    let daemon = Daemon::start();
    let id = start_cat(&daemon);
    daemon.result(&["write", &id, "--line", "before"]);
    let stand_in = || daemon.stand_in();
    let first = stand_in().unwrap();
    kill(first);
    eventually("there is another", || stand_in().is_some_and(|next| next != first));
    kill(daemon.worker());
    daemon.result(&["write", &id, "--line", "after"]);
    check_cat(&daemon, &id, "before\nafter\n");
}

#[test]
fn a_crash_loop_is_reported_and_loses_nothing() {
    let fixture = Fixture::new();
    let mut daemon = bare_daemon::Daemon::start(bare_daemon::serve(&fixture, &[]));
    daemon.address();
    let ours = |arguments: &[&str]| {
        let mut command = fixture.lastbyte(arguments);
        command.env("XDG_RUNTIME_DIR", bare_daemon::runtime(&fixture));
        finish(command)
    };
    let id = ours(&["start", "--stdin-open", "--", "cat"]).stdout;
    let id = id.trim();
    ours(&["write", id, "--line", "before"]);
    let keeper = || {
        let report: Value = serde_json::from_str(&ours(&["doctor", "--json"]).stdout).unwrap();
        report["server"]["keeper"].clone()
    };
    let mut worker = Value::Null;
    for _ in 0..6 {
        // Asked of the server: a process of it that has just been made has any name.
        eventually("there is another", || {
            let next = keeper()["worker_pid"].clone();
            let is_new = next.is_u64() && next != worker;
            if is_new {
                worker = next;
            }
            is_new
        });
        kill(u32::try_from(worker.as_u64().unwrap()).unwrap());
    }
    assert_eq!(ours(&["write", id, "--line", "after"]).code, Some(0));
    ours(&["write", id, "--close"]);
    assert_eq!(ours(&["wait", id]).code, Some(0));
    assert_eq!(ours(&["logs", id]).stdout, "before\nafter\n");
    assert_eq!(keeper()["restarts"], 6);
    let log = daemon.stop(Signal::TERM).stderr;
    let pause = "lastbyte: 5 workers died one after the other; starting the next in 100ms";
    assert!(log.contains(pause), "{log}");
}

/// Nothing is called whole that is not.
#[test]
fn a_take_over_on_a_full_disk_goes_on_and_counts_what_is_not_kept() {
    let name = "deaths::a_take_over_on_a_full_disk_goes_on_and_counts_what_is_not_kept";
    if !inside(name, &["--mount", "--propagation=private"]) {
        return;
    }
    let fixture = Fixture::new();
    let state = fixture.home.path().join("state");
    fs::create_dir(&state).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(&state);
    assert!(mount.status().unwrap().success());
    let daemon = Daemon::in_home(fixture);
    let small = daemon.testchild(&[], "print early then hold");
    let large = daemon.testchild(&[], "write-bytes 6000000 then hold");
    daemon.fixture.anchor.wait_for(2);
    eventually("the disk is full", || show(&daemon, &large)["total"] == 6_000_000);
    let first_half = |id: &str| daemon.finish(&["logs", id]).stdout.len() >= 1_000_000;
    assert!(first_half(&large), "what the disk took is there");
    kill(daemon.worker());
    daemon.fixture.anchor.tell("write-bytes 100000");
    daemon.fixture.anchor.tell("exit 3");
    for (id, total) in [(&small, 100_005), (&large, 6_100_000)] {
        assert_eq!(daemon.finish(&["wait", id]).code, Some(3), "its own status");
        let process = show(&daemon, id);
        assert_eq!(process["total"], total, "{process}");
        let kept = &process["ending"]["kept"];
        assert_eq!(kept["kind"], "failed", "{process}");
    }
    assert!(first_half(&large));
    let text = daemon.finish(&["logs", &large]).stdout;
    let want = String::from_utf8_lossy(&pattern_bytes(0..1_000_000)).into_owned();
    // The last character may be cut.
    assert!(text.as_bytes().starts_with(&want.as_bytes()[..want.len() - 8]));
    assert!(daemon.finish(&["logs", &small]).stdout.starts_with("early"));
    let home = daemon.fixture.home.path().to_owned();
    drop(daemon);
    _ = Command::new("umount").arg("--lazy").arg(home.join("state")).status();
}
