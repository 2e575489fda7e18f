use lastbyte_testkit::{eventually, testchild};
use serde_json::{Value, json};

use crate::harness::{Fixture, finish};

/// The last line of standard error, and the exit code.
fn report(fixture: &Fixture, options: &[&str], actions: &str) -> (Value, Option<i32>) {
    let mut command = fixture.run(&["--json"]);
    command.args(options).arg("--").arg(testchild()).args(actions.split_whitespace());
    let finished = finish(command);
    let line = finished.stderr.lines().last().expect("a line");
    (serde_json::from_str(line).expect("JSON"), finished.code)
}

#[test]
fn a_report_has_everything_known() {
    let fixture = Fixture::new();
    let (report, code) = report(&fixture, &["--cwd", "/"], "print abc then eprint de then exit 3");
    assert_eq!(code, Some(3));
    assert_eq!(report["phase"], "ended");
    assert_eq!(report["streams"], "split");
    assert_eq!(report["total"], 5);
    assert_eq!(report["cwd"], "/");
    let ending = &report["ending"];
    assert_eq!(ending["status"], json!({"kind": "exited", "code": 3}));
    assert_eq!(ending["cause"], json!({"kind": "own"}));
    assert_eq!(ending["closing"], json!({"kind": "eof"}));
    assert_eq!(ending["kept"], json!({"kind": "whole"}));
    assert_eq!(ending["final_len"], 5);
    assert_eq!(report["id"].as_str().map(str::len), Some(36));
    assert!(report["pid"].as_u64() > Some(1));
    let times = &ending["times"];
    let time = |name: &str| times[name].as_u64().unwrap_or_else(|| panic!("{name} in {times}"));
    assert!(time("started_unix_ns") < time("exited_unix_ns"));
    assert!(time("exited_unix_ns") <= time("ended_unix_ns"));
    assert!(time("ran_ns") > 0 && time("drained_ns") < time("ran_ns") + 1_000_000_000);
    assert!(ending["usage"]["user_ns"].is_u64() && ending["usage"]["system_ns"].is_u64());
    assert!(ending["usage"].get("peak_memory").is_none_or(Value::is_u64));
}

#[test]
fn a_report_names_the_cause_of_an_ending() {
    let fixture = Fixture::new();
    let (report, code) = report(&fixture, &["--timeout", "100ms"], "hold");
    assert_eq!(code, Some(124));
    let signalled =
        json!({"kind": "signalled", "signal": 15, "name": "SIGTERM", "core_dumped": false});
    let ending = &report["ending"];
    assert_eq!(ending["status"], signalled);
    assert_eq!(ending["cause"], json!({"kind": "timed_out", "which": "wall", "escalated": false}));
}

#[test]
fn a_report_names_the_holders_of_the_output() {
    // They are looked for so briefly that a busy machine may not find them.
    eventually("the holders are found in time", || {
        let fixture = Fixture::new();
        let (report, _) = report(&fixture, &[], "eprint unfinished then leave-silent-holder");
        let closing = &report["ending"]["closing"];
        let holders = json!([{"pid": fixture.anchor.pids()[0], "name": "testchild"}]);
        let is_known = closing.get("holders").is_some();
        assert!(!is_known || *closing == json!({"kind": "held", "holders": holders}), "{closing}");
        is_known
    });
}

#[test]
fn a_report_comes_after_the_summary() {
    let fixture = Fixture::new();
    let finished = finish(fixture.run(&["--json", "--summary", "printf x >&2; exit 3"]));
    let lines: Vec<&str> = finished.stderr.lines().collect();
    let [x, summary, report] = lines.as_slice() else { panic!("three lines, not {lines:?}") };
    assert_eq!(*x, "x");
    assert!(summary.starts_with("lastbyte: exit 3, after 0."), "{summary}");
    assert!(summary.contains("; 1 byte of output; cpu 0."), "{summary}");
    assert!(report.starts_with('{'));
}

#[test]
fn a_command_that_cannot_start_is_reported_as_an_error_of_the_api() {
    let fixture = Fixture::new();
    for (arguments, code, want) in [
        (["--", "no-such-program"].as_slice(), 127, "program_not_found"),
        (&["--", "/etc/passwd"], 126, "program_not_runnable"),
        (&["--cwd", "/no/such", "true"], 125, "bad_cwd"),
    ] {
        let refused = |options: &[&str]| finish(fixture.run(&[options, arguments].concat()));
        let (plain, json) = (refused(&[]), refused(&["--json"]));
        assert_eq!((plain.code, json.code), (Some(code), Some(code)), "{json:?}");
        let line = json.stderr.strip_prefix(&plain.stderr).expect("the same message first");
        let body: Value = serde_json::from_str(line).expect("one line of JSON");
        assert_eq!(body["error"]["code"], want);
        assert!(body["error"]["message"].is_string(), "{body}");
    }
}

#[test]
fn a_process_that_still_runs_is_named_once() {
    let fixture = Fixture::new();
    let mut command = fixture.run(&["--summary", "--"]);
    command.arg(testchild()).arg("leave-silent-holder");
    let finished = finish(command);
    let pid = fixture.anchor.pids()[0];
    let end = format!("lastbyte: still running: testchild (pid {pid}); ");
    assert!(finished.stderr.contains(&end), "{finished:?}");
    assert_eq!(finished.stderr.matches("still running").count(), 1, "{finished:?}");
}
