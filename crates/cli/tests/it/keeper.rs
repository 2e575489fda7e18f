//! The keeper of a server: crashes of the worker, and of the keeper itself.

use std::os::unix::net::UnixDatagram;
use std::process::Command;

use lastbyte_testkit::{eventually, is_alive};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::bare_daemon::{Daemon, get_unix, log, runtime, serve, state};
use crate::daemon as served;
use crate::harness::{Fixture, finish, kill_server, worker_of};

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

fn doctor(fixture: &Fixture) -> Value {
    let mut command: Command = fixture.lastbyte(&["doctor", "--json"]);
    command.env("XDG_RUNTIME_DIR", runtime(fixture));
    let finished = finish(command);
    serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"))
}

#[test]
fn a_crash_ends_neither_the_server_nor_its_address() {
    let fixture = Fixture::new();
    let path = fixture.home.path().join("notify");
    let supervisor = UnixDatagram::bind(&path).unwrap();
    let mut command = serve(&fixture, &["--listen", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", &path);
    let mut daemon = Daemon::start(command);
    let socket = daemon.address();
    let socket = socket.strip_prefix("unix:").unwrap();
    daemon.address();
    // Before that, the next worker would be the first to be ready.
    supervisor.recv(&mut [0; 100]).unwrap();
    let first = worker_of(&daemon.child);
    assert_ne!(first, daemon.child.id());
    kill(first);
    // A connection waits for the next worker; one that the dead worker had is gone.
    assert_eq!(get_unix(socket), "HTTP/1.1 200 OK");
    let report = doctor(&fixture);
    let server = &report["server"];
    assert_eq!(server["pid"], daemon.child.id());
    assert_eq!(server["keeper"]["pid"], daemon.child.id());
    assert_eq!(server["keeper"]["restarts"], 1);
    assert_eq!(server["keeper"]["last_crash"], "was killed by SIGKILL");
    assert_eq!(server["keeper"]["worker_pid"], worker_of(&daemon.child));
    let stopped = daemon.stop(Signal::TERM);
    assert_eq!((stopped.code, stopped.stdout.as_str()), (Some(0), ""), "{stopped:?}");
    assert!(stopped.stderr.contains("lastbyte: the worker was killed by SIGKILL"), "{stopped:?}");
    assert!(!std::path::Path::new(socket).exists());
    assert!(!state(&fixture).join("address").exists());
}

/// What a server whose worker is killed says about it: the line of its log.
fn said_of_a_crash(server: &served::Daemon) -> String {
    kill(server.worker());
    let of_crash = |line: &&str| line.contains("lastbyte: the worker was killed");
    let said = || server.log().lines().find(of_crash).map(str::to_owned);
    eventually("the crash is in the log", || said().is_some());
    said().unwrap()
}

#[test]
fn the_log_of_a_server_has_the_time_of_each_message() {
    let text = "lastbyte: the worker was killed by SIGKILL";
    let said = said_of_a_crash(&served::Daemon::start());
    let (time, rest) = said.split_once(' ').unwrap();
    assert_eq!(rest, text);
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z");
    // The journal has times of its own.
    let by_journal = r#"JOURNAL_STREAM=$(stat -Lc %d:%i /dev/stderr) exec "$@""#;
    let server = served::Daemon::started_by("sh", &["-c", by_journal, "sh"]);
    assert_eq!(said_of_a_crash(&server), text);
}

#[test]
fn a_worker_goes_on_without_its_keeper_and_has_the_lock() {
    let fixture = Fixture::new();
    let mut daemon = Daemon::start(serve(&fixture, &[]));
    let socket = daemon.address();
    let worker = worker_of(&daemon.child);
    kill(daemon.child.id());
    daemon.child.wait().unwrap();
    assert_eq!(get_unix(socket.strip_prefix("unix:").unwrap()), "HTTP/1.1 200 OK");
    let lock = state(&fixture).join("lock");
    eventually("the lock has its pid", || {
        std::fs::read_to_string(&lock).is_ok_and(|text| text == format!("{worker}\n"))
    });
    let refused = finish(serve(&fixture, &[]));
    assert!(refused.stderr.contains(&format!("(pid {worker}) already uses")), "{refused:?}");
    assert!(doctor(&fixture)["server"]["keeper"].is_null());
    let mut shutdown = fixture.lastbyte(&["shutdown"]);
    shutdown.env("XDG_RUNTIME_DIR", runtime(&fixture));
    assert_eq!(finish(shutdown).code, Some(0));
    assert!(!is_alive(worker));
}

#[test]
fn without_a_keeper_there_is_one_process() {
    let fixture = Fixture::new();
    let mut daemon = Daemon::start(serve(&fixture, &["--no-keeper"]));
    daemon.address();
    assert_eq!(worker_of(&daemon.child), daemon.child.id());
    assert!(doctor(&fixture)["server"]["keeper"].is_null());
    let stopped = daemon.stop(Signal::TERM);
    assert_eq!(stopped.code, Some(0));
    assert!(log(&stopped.stderr).iter().any(|line| line["message"] == "stopped"), "{stopped:?}");
}

#[test]
fn a_command_does_not_take_itself_for_a_worker() {
    let fixture = Fixture::new();
    let mut daemon = Daemon::start(serve(&fixture, &[]));
    daemon.address();
    let ours = |arguments: &[&str]| {
        let mut command = fixture.lastbyte(arguments);
        command.env("XDG_RUNTIME_DIR", runtime(&fixture));
        finish(command)
    };
    let id = ours(&["start", "--", "env"]).stdout;
    assert_eq!(ours(&["wait", id.trim()]).code, Some(0));
    let variables = ours(&["logs", id.trim()]).stdout;
    assert!(variables.contains("PATH=") && !variables.contains("LASTBYTE_WORKER"), "{variables}");
    kill_server(&mut daemon.child);
}

#[test]
fn commands_are_killed_before_the_server_when_memory_runs_out() {
    let daemon = crate::daemon::Daemon::start();
    let id = daemon.testchild(&[], "hold");
    let shown: Value = serde_json::from_str(&daemon.result(&["show", "--json", &id])).unwrap();
    let command = shown["pid"].as_u64().unwrap_or_else(|| panic!("{shown}"));
    let score = |pid: u64| -> i32 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        text.trim().parse().unwrap()
    };
    let own = score(std::process::id().into());
    assert_eq!(score(daemon.worker().into()), own);
    eventually("it is preferred", || score(command) == own + 500);
    daemon.result(&["stop", &id]);
}
