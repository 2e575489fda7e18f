//! What `serve` lets all commands have together, and each of them.

use serde_json::Value;

use crate::daemon::Daemon;

#[track_caller]
fn refused(daemon: &Daemon, options: &[&str], why: &str) {
    let arguments = [&["start"], options, &["--", "sleep", "600"]].concat();
    let finished = daemon.finish(&arguments);
    assert_eq!(finished.code, Some(125), "{options:?}");
    assert!(finished.stderr.contains(why), "{options:?}: {}", finished.stderr);
}

fn sleeping(daemon: &Daemon, options: &[&str]) -> String {
    daemon.testchild(options, "sleep-ms 600000")
}

#[test]
fn a_server_runs_as_many_commands_as_it_was_told() {
    let daemon = Daemon::with(&["--max-running", "3", "--max-running-per-session", "2"]);
    let of_a = [(); 2].map(|()| sleeping(&daemon, &["--session", "a"]));
    refused(&daemon, &["--session", "a"], "2 processes of this session are running");
    let of_b = sleeping(&daemon, &["--session", "b"]);
    refused(&daemon, &[], "3 processes are running");
    daemon.result(&["stop", &of_a[0]]);
    let next = sleeping(&daemon, &["--session", "a"]);
    daemon.result(&["stop", &of_a[1], &of_b, &next]);
}

#[test]
fn a_server_keeps_as_much_output_as_it_was_told() {
    let daemon = Daemon::with(&["--max-bytes", "30KB", "--max-bytes-per-session", "10KB"]);
    let write = |session: &str| {
        let id = daemon.testchild(&["--session", session], "write-bytes 20000");
        daemon.result(&["wait", &id]);
        id
    };
    let of_a = write("a");
    refused(&daemon, &["--session", "a"], "the output of this session takes more than 10000 bytes");
    write("b");
    refused(&daemon, &["--session", "c"], "30000 bytes");
    daemon.result(&["forget", &of_a]);
    let next = sleeping(&daemon, &["--session", "a"]);
    daemon.result(&["stop", &next]);
}

#[test]
fn a_command_has_the_limits_of_its_server() {
    let limits = ["--default-limits", "files=50", "--max-limits", "files=100,pids=500"];
    let daemon = Daemon::with(&limits);
    let of = |options: &[&str]| -> Value {
        let id = sleeping(&daemon, options);
        let shown: Value = serde_json::from_str(&daemon.result(&["show", "--json", &id])).unwrap();
        daemon.result(&["stop", &id]);
        shown["limits"].clone()
    };
    assert_eq!(of(&[]), serde_json::json!({ "open_files": 50, "pids": 500 }));
    assert_eq!(of(&["--files", "80"]), serde_json::json!({ "open_files": 80, "pids": 500 }));
    refused(&daemon, &["--files", "101"], "above the server's cap of 100");
}
