use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write, pipe};
use std::process::Stdio;

use lastbyte_testkit::testchild;
use rustix::process::Signal;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::{Finished, Fixture, finish, send, start};

#[test]
fn a_start_prints_only_the_id_and_does_not_wait() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    assert_eq!(id.len(), 36);
    daemon.fixture.anchor.wait_for(1);
    let shown: Value = serde_json::from_str(&daemon.result(&["show", &id, "--json"])).unwrap();
    assert_eq!(shown["phase"], "running");
}

#[test]
fn a_command_runs_where_the_caller_is() {
    let daemon = Daemon::start();
    let mut command = daemon.lastbyte(&["start", "--"]);
    command.arg(testchild()).arg("print-cwd").current_dir("/usr");
    let id = finish(command).stdout;
    assert_eq!(daemon.result(&["logs", "-f", id.trim()]), "/usr");
    let mut command = daemon.lastbyte(&["start", "--cwd", "bin/..", "--"]);
    command.arg(testchild()).arg("print-cwd").current_dir("/usr");
    let id = finish(command).stdout;
    assert_eq!(daemon.result(&["logs", "-f", id.trim()]), "/usr");
}

#[test]
fn a_command_has_the_callers_variables_with_its_edits() {
    let daemon = Daemon::start();
    let check = |options: &[&str], want: &str| {
        let mut command = daemon.lastbyte(&["start"]);
        command.args(options).env("OF_CALLER", "a b").arg("--").arg(testchild());
        let id = finish({
            command.args(["print-env", "OF_CALLER"]);
            command
        });
        assert_eq!(daemon.result(&["logs", "-f", id.stdout.trim()]), want);
    };
    check(&[], "a b");
    check(&["--env", "OF_CALLER=c"], "c");
    check(&["--unset", "OF_CALLER"], "(unset)");
}

#[test]
fn a_repeated_start_with_a_key_returns_the_same_process() {
    let daemon = Daemon::start();
    let first = daemon.testchild(&["--key", "k"], "hold");
    assert_eq!(daemon.testchild(&["--key", "k"], "hold"), first);
    let other = daemon.finish(&["start", "--key", "k", "true"]);
    assert_eq!((other.code, other.stdout.as_str()), (Some(125), ""), "{other:?}");
}

#[test]
fn a_key_with_another_environment_is_a_conflict() {
    let daemon = Daemon::start();
    daemon.result(&["start", "--key", "k", "true"]);
    let mut command = daemon.lastbyte(&["start", "--key", "k", "true"]);
    command.env("OF_CALLER", "other");
    let conflict = finish(command);
    assert_eq!(conflict.code, Some(125));
    let want = "lastbyte: the key \"k\" was already used for a start that differs in its variables (OF_CALLER)";
    assert!(conflict.stderr.starts_with(want), "{}", conflict.stderr);
    let help = daemon.result(&["start", "--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("a single variable of your environment"), "{help}");
}

#[test]
fn a_start_that_fails_says_why() {
    let daemon = Daemon::start();
    for (arguments, code) in [
        (["start", "--", "/proc/nowhere/program"].as_slice(), 127),
        (&["start", "--", "/etc/passwd"], 126),
        (&["start", "--cwd", "/proc/nowhere", "true"], 125),
    ] {
        let Finished { code: found, stdout, stderr } = daemon.finish(arguments);
        assert_eq!((found, stdout.as_str()), (Some(code), ""), "{arguments:?}: {stderr}");
        assert!(stderr.starts_with("lastbyte: "), "{stderr}");
    }
}

#[test]
fn a_terminal_a_session_and_labels_reach_the_server() {
    let daemon = Daemon::start();
    let options =
        ["--tty", "24x80", "--session", "s", "--label", "a=b", "--label", "c=d=e", "--json"];
    let mut arguments = vec!["start"];
    arguments.extend(options);
    arguments.push("true");
    let answer: Value = serde_json::from_str(&daemon.result(&arguments)).unwrap();
    let process = &answer["process"];
    assert_eq!(process["streams"], "tty");
    assert_eq!(process["session"], "s");
    assert_eq!(process["labels"], serde_json::json!({"a": "b", "c": "d=e"}));
}

#[test]
fn a_terminal_is_all_three_streams_of_the_command() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--tty", "24x80"], "is-tty");
    assert_eq!(daemon.result(&["logs", "-f", &id]), "stdin stdout stderr\r\n");
    let id = daemon.testchild(&["--tty", "24x80"], "print ready then cat");
    daemon.result(&["wait", &id, "--pattern", "ready"]);
    daemon.result(&["write", &id, "typed\n\u{4}"]);
    assert_eq!(daemon.result(&["logs", "-f", &id]), "readytyped\r\ntyped\r\n");
}

/// Of `start` with this standard input: what it says.
fn said_about_input(daemon: &Daemon, stdin: impl Into<Stdio>, options: &[&str]) -> String {
    let mut command = daemon.lastbyte(&["start", "true"]);
    command.args(options).stdin(stdin);
    let finished = finish(command);
    assert_eq!((finished.code, finished.stdout.len()), (Some(0), 37), "{finished:?}");
    finished.stderr
}

#[test]
fn input_that_is_not_passed_on_is_reported() {
    let daemon = Daemon::start();
    let file = daemon.fixture.home.path().join("input");
    std::fs::write(&file, "text").unwrap();
    let open = || File::open(&file).unwrap();
    let (full, mut writer) = pipe().unwrap();
    writer.write_all(b"text").unwrap();
    let warning = "lastbyte: warning: standard input is not passed on to the command: use `lastbyte \
                   run`, or `lastbyte start --stdin-open` and then `lastbyte write`\n";
    assert_eq!(said_about_input(&daemon, full.try_clone().unwrap(), &[]), warning);
    assert_eq!(said_about_input(&daemon, open(), &[]), warning);
    // The input is told of, or there is nothing to pass on, or it may be nobody's.
    assert_eq!(said_about_input(&daemon, full, &["--stdin-open"]), "");
    let (idle, _writer) = pipe().unwrap();
    let mut read = open();
    read.seek(SeekFrom::End(0)).unwrap();
    let (closed, _) = pipe().unwrap();
    for nothing in [idle.into(), read.into(), closed.into(), Stdio::null()] {
        assert_eq!(said_about_input(&daemon, nothing, &[]), "");
    }
}

#[test]
fn an_unquoted_command_is_shown_quoted() {
    let daemon = Daemon::start();
    let fix = "Quote the command, or put it after `--`:\n  lastbyte start 'echo hi'\n  \
               lastbyte start -- echo hi\n";
    let line = "lastbyte: pass the shell command as one quoted argument (got 2)";
    daemon.check(&["start", "echo", "hi"], 2, "", &format!("{line}\n\n{fix}"));
}

#[test]
fn a_process_gets_the_descriptor_limit_of_the_servers_caller() {
    let fixture = Fixture::new();
    let serve = "ulimit -S -n 300; exec \"$LASTBYTE\" serve";
    let mut server = start(fixture.shell(serve));
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("listening on unix:"));
    let id = finish(fixture.lastbyte(&["start", "ulimit -S -n; ulimit -H -n"])).stdout;
    finish(fixture.lastbyte(&["wait", id.trim()]));
    let told = finish(fixture.lastbyte(&["logs", id.trim()])).stdout;
    send(&server, Signal::TERM);
    server.wait().unwrap();
    let hard = finish(fixture.shell("ulimit -H -n")).stdout;
    assert_eq!(told, format!("300\n{hard}"));
}

#[test]
fn a_command_can_keep_running_after_its_timeout() {
    let daemon = Daemon::start();
    let options = ["--timeout", "1ms", "--on-timeout", "background"];
    let id = daemon.testchild(&options, "sleep-ms 100 then exit 6");
    daemon.check(&["wait", &id], 6, "", "");
    assert!(daemon.result(&["show", &id]).contains("\ntimed out "));
    let refused = daemon.finish(&["start", "--on-timeout", "never", "true"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
}
