use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::LASTBYTE;

#[test]
fn the_exit_code_is_the_commands_own() {
    let daemon = Daemon::start();
    let check = |options: &[&str], actions: &str, code: i32| {
        let id = daemon.testchild(options, actions);
        daemon.check(&["wait", &id], code, "", "");
    };
    check(&[], "exit 0", 0);
    check(&[], "exit 42", 42);
    check(&[], "kill-self 15", 143);
    check(&["--timeout", "50ms"], "hold", 124);
}

#[test]
fn a_wait_that_times_out_leaves_the_process_alone() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    let over = "lastbyte: timed out; the process keeps running\n";
    daemon.check(&["wait", &id, "--timeout", "10ms"], 124, "", over);
    daemon.fixture.anchor.wait_for(1);
}

#[test]
fn a_condition_that_is_met_is_a_success() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], r"print listening\x20on\x207070\n then hold");
    daemon.check(&["wait", &id, "--pattern", "on [0-9]+"], 0, "on 7070\n", "");
    daemon.check(&["wait", &id, "--output-past", "5"], 0, "", "");
    daemon.check(&["wait", &id, "--silence", "20ms"], 0, "", "");
}

#[test]
fn the_process_that_waits_for_input_is_named() {
    let daemon = Daemon::start();
    let check = |options: &[&str], actions: &str, on: &str| {
        let id = daemon.testchild(options, actions);
        let said = daemon.result(&["wait", &id, "--needs-input", "--timeout", "60s"]);
        let (name, rest) = said.split_once(" (pid ").unwrap();
        let (pid, rest) = rest.split_once(") ").unwrap();
        assert_eq!((name, rest), ("testchild", format!("waits for input on {on}\n").as_str()));
        assert!(pid.parse::<u32>().is_ok(), "{said}");
    };
    check(&["--stdin-open"], "cat", "standard input");
    check(&["--tty", "24x80"], "cat", "the terminal");
    let password = "the terminal, without showing it: a password";
    check(&["--tty", "24x80"], "hide-typing then cat", password);
    let id = daemon.testchild(&["--stdin-open"], "hold");
    let over = "lastbyte: timed out; the process keeps running\n";
    daemon.check(&["wait", &id, "--needs-input", "--timeout", "200ms"], 124, "", over);
    let id = daemon.testchild(&[], "cat");
    let ended = "lastbyte: the process ended first: exit 0\n";
    daemon.check(&["wait", &id, "--needs-input"], 1, "", ended);
}

#[test]
fn a_pattern_matches_what_a_person_sees_and_raw_the_bytes() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], r"print 50%\r\x1b[32mrea\x1b[0mdy\r\n then hold");
    daemon.check(&["wait", &id, "--pattern", "^ready$"], 0, "ready\n", "");
    daemon.check(&["wait", &id, "--pattern", "^50%$"], 0, "50%\n", "");
    let raw = ["wait", &id, "--timeout", "10ms", "--raw", "--pattern"];
    daemon.check(&[&raw[..], &["dy"]].concat(), 0, "dy\n", "");
    assert_eq!(daemon.finish(&[&raw[..], &["ready"]].concat()).code, Some(124));
    assert_eq!(daemon.finish(&["wait", &id, "--raw"]).code, Some(2), "of what?");
}

#[test]
fn an_exit_before_the_condition_is_a_failure() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "print nothing");
    let ended = "lastbyte: the process ended first: exit 0\n";
    daemon.check(&["wait", &id, "--pattern", "ready"], 1, "", ended);
}

#[test]
fn an_invalid_pattern_is_refused() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    let finished = daemon.finish(&["wait", &id, "--pattern", "("]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
}

#[test]
fn the_answer_can_be_printed_as_json() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "exit 5");
    let finished = daemon.finish(&["wait", &id, "--json"]);
    let answer: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!((finished.code, &answer["wait"]["met"]), (Some(5), &"exit".into()));
    assert_eq!(answer["process"]["ending"]["status"]["code"], 5);
}

#[test]
fn a_port_is_a_success_once_the_command_listens_on_it() {
    let daemon = Daemon::start();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let id = daemon.testchild(&[], &format!("listen {port} then hold"));
    daemon.check(&["wait", &id, "--port", &port.to_string()], 0, "", "");
    let id = daemon.testchild(&[], "exit 3");
    let ended = "lastbyte: the process ended first: exit 3\n";
    daemon.check(&["wait", &id, "--port", &port.to_string()], 1, "", ended);
}

/// The server itself provides the terminal for `wait`.
#[test]
fn a_terminal_shows_a_status_line_while_it_waits() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "print 12345 then hold");
    daemon.fixture.anchor.wait_for(1);
    let wait = |more: &[&str]| {
        let arguments = ["start", "--tty", "24x80", "--", &LASTBYTE, "wait", &id];
        daemon.result(&[&arguments, more].concat()).trim_end().to_owned()
    };
    let line = format!("waiting for {}: running for [0-9]+s, 5 B of output", &id[28..]);
    let (waiting, interrupted) = (wait(&[]), wait(&[]));
    let quiet = wait(&["--json"]);
    for waiting in [&waiting, &interrupted] {
        daemon.finish(&["wait", waiting, "--timeout", "60s", "--pattern", &line]);
    }
    daemon.result(&["signal", &interrupted, "INT"]);
    daemon.check(&["wait", &interrupted], 130, "", "");
    let shown = daemon.result(&["logs", &interrupted]);
    let told = "\r\u{1b}[Klastbyte: interrupted by SIGINT; the process keeps running\r\n";
    assert!(shown.ends_with(told), "{shown:?}");
    daemon.fixture.anchor.tell("exit 7");
    daemon.check(&["wait", &waiting], 7, "", "");
    let shown = daemon.result(&["logs", &waiting]);
    assert!(shown.starts_with("\r\u{1b}[Kwaiting") && shown.ends_with("\r\u{1b}[K"), "{shown:?}");
    daemon.check(&["wait", &quiet], 7, "", "");
    let shown = daemon.result(&["logs", &quiet]);
    assert!(shown.starts_with('{') && !shown.contains('\u{1b}'), "{shown:?}");
}

#[test]
fn a_pattern_is_looked_for_from_a_byte_on() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--stdin-open"], "print one\\n then await-eof then print two\\n");
    daemon.check(&["wait", &id, "--pattern", "one|two"], 0, "one\n", "");
    daemon.result(&["write", &id, "--close"]);
    daemon.check(&["wait", &id, "--pattern", "one|two", "--from", "4"], 0, "two\n", "");
}
