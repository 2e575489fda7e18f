//! `lastbyte attach` on a real terminal.

mod left;
mod plain;
mod reconnect;
mod started;

use std::os::unix::net::UnixStream;
use std::process::{Child, Stdio};

use lastbyte_testkit::testchild;
use rustix::process::Signal;
use serde_json::json;

use crate::bare_daemon::{answer, post};
use crate::daemon::Daemon;
use crate::harness::{finish, send};
use crate::pty::Pty;

const TTY: [&str; 3] = ["--tty", "24x80", "--stdin-open"];
const DETACH: &str = "\x1c";

/// A terminal attached to the process.
fn attach(daemon: &Daemon, id: &str, options: &[&str]) -> (Pty, Child) {
    let pty = Pty::new(24, 80);
    let child = pty.run(daemon.lastbyte(&[&["attach", id], options].concat()));
    (pty, child)
}

/// The same, once it accepts keys.
fn attached(daemon: &Daemon, id: &str) -> (Pty, Child) {
    let (mut pty, child) = attach(daemon, id, &[]);
    pty.shows(&format!("attached to {}; Ctrl-\\ detaches\r\n", &id[28..]));
    until_raw(&pty);
    (pty, child)
}

fn until_raw(pty: &Pty) {
    lastbyte_testkit::eventually("the terminal gives every key", || !pty.is_as_before());
}

#[test]
fn keys_reach_the_process_and_what_it_writes_is_shown() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, "cat then print last then exit 7");
    let (mut pty, child) = attached(&daemon, &id);
    pty.types("hello\r");
    // Echoed once, by the terminal of the process; ours would echo it again.
    pty.shows("hello\r\nhello\r\n");
    pty.types("\x04");
    assert_eq!(pty.ends(child), Some(7));
    let told = "last\r\nlastbyte: the process has ended: exit 7\r\n";
    assert_eq!(pty.seen, told);
    assert!(pty.is_as_before());
}

#[test]
fn the_process_gets_the_size_at_once_and_at_each_change() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, "print-winsize-on-winch then print-winsize-on-winch");
    daemon.result(&["wait", &id, "--pattern", "ready"]);
    let mut pty = Pty::new(30, 100);
    let child = pty.run(daemon.lastbyte(&["attach", &id]));
    pty.shows("30 100\r\n");
    pty.shows("ready\r\n");
    pty.resize(33, 77);
    send(&child, Signal::WINCH);
    pty.shows("33 77\r\n");
    assert_eq!(pty.ends(child), Some(0));
}

#[test]
fn a_detached_process_keeps_running_and_can_be_attached_to_again() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, "cat");
    let (mut pty, child) = attached(&daemon, &id);
    pty.types("one\r");
    pty.shows("one\r\none\r\n");
    // Keys typed just before the detach key are still sent.
    pty.types("two\r\x1c");
    assert_eq!(pty.ends(child), Some(0));
    let again = format!(
        "detached; the process keeps running; return with `lastbyte attach {}`\r\n",
        &id[28..]
    );
    assert!(pty.seen.ends_with(&again), "{:?}", pty.seen);
    assert!(pty.is_as_before());
    daemon.result(&["wait", &id, "--pattern", "two", "--timeout", "60s"]);

    let (mut pty, child) = attached(&daemon, &id);
    pty.shows("one\r\none\r\ntwo\r\ntwo\r\n");
    pty.types("three\r\x04");
    pty.shows("three\r\nthree\r\n");
    assert_eq!(pty.ends(child), Some(0));
}

#[test]
fn with_another_detach_key_the_default_one_is_sent_to_the_process() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, "print up then hold");
    let (mut pty, child) = attach(&daemon, &id, &["--detach-key", "ctrl-p,ctrl-q"]);
    pty.shows("; Ctrl-P Ctrl-Q detaches");
    until_raw(&pty);
    pty.types("\x10\x11");
    assert_eq!(pty.ends(child), Some(0));

    let (mut pty, child) = attach(&daemon, &id, &["--detach-key", "none"]);
    pty.shows(" until it ends\r\n");
    until_raw(&pty);
    // The terminal of the process turns it into SIGQUIT.
    pty.types(DETACH);
    assert_eq!(pty.ends(child), Some(131));
}

#[test]
fn an_invalid_detach_key_is_refused_before_a_connection_is_made() {
    let daemon = Daemon::start();
    for (key, why) in [
        ("alt-x", "expected ctrl- and a letter"),
        ("d", "expected ctrl- and a letter"),
        ("ctrl-[", "ctrl-[ is Escape"),
        ("ctrl-a,ctrl-[", "ctrl-[ is Escape"),
    ] {
        // It does not even look for the process.
        let refused = daemon.finish(&["attach", "nobody", "--detach-key", key]);
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
        assert!(refused.stderr.contains(why), "{refused:?}");
    }
}

/// The control sequences come in both forms: 7-bit, and 8-bit encoded as UTF-8, of which the letters are text.
#[test]
fn a_replay_sends_our_terminal_no_queries_and_no_settings() {
    let daemon = Daemon::start();
    let questions = r"a\xc2\x9b6nb\xc2\x9d0;title\xc2\x9cc\xc2\x9fapc\xc2\x9cd\xc2\xa9e\x1b[6nf";
    let id = daemon.testchild(&TTY, &format!("print {questions} then hold"));
    daemon.result(&["wait", &id, "--pattern", "f", "--timeout", "60s"]);
    let (mut pty, child) = attached(&daemon, &id);
    pty.shows("a6nb0;titlecapcd\u{a9}ef");
    pty.types(DETACH);
    assert_eq!(pty.ends(child), Some(0));
    assert!(!pty.seen.contains("\x1b[6n"), "{:?}", pty.seen);
}

#[test]
fn a_read_only_client_sends_neither_keys_nor_a_size() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, "print up then hold");
    let mut pty = Pty::new(30, 100);
    let child = pty.run(daemon.lastbyte(&["attach", &id, "--read-only"]));
    pty.shows(", read-only; Ctrl-\\ detaches");
    pty.shows("up");
    pty.types("abc\x1c");
    assert_eq!(pty.ends(child), Some(0));
    let accepted = daemon.result(&["write", &id, "", "--json"]);
    assert_eq!(accepted, "{\"accepted\":0}\n");
    daemon.fixture.anchor.tell("winsize");
    daemon.result(&["wait", &id, "--pattern", "24 80", "--timeout", "60s"]);
}

#[test]
fn a_process_without_input_is_shown_and_can_be_detached_from() {
    let daemon = Daemon::start();
    // Only the API starts a command on a terminal without input.
    let command = json!([testchild().to_str().unwrap(), "print", "up", "then", "hold"]);
    let stream = UnixStream::connect(daemon.socket()).unwrap();
    let request = json!({ "command": command, "tty": { "rows": 24, "cols": 80 } });
    post(&stream, "/v1/processes", &request);
    let started = answer(stream);
    let (mut pty, child) = attach(&daemon, started["process"]["id"].as_str().unwrap(), &[]);
    pty.shows(", which takes no input; Ctrl-\\ detaches\r\nup");
    pty.types("x\x1c");
    assert_eq!(pty.ends(child), Some(0));
    assert!(!pty.seen.contains("refused"), "{:?}", pty.seen);
}

#[test]
fn an_ended_process_is_shown_with_its_exit_status() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&TTY, r"print first\n then print last\n then exit 3");
    daemon.finish(&["wait", &id]);
    let (mut pty, child) = attach(&daemon, &id, &[]);
    assert_eq!(pty.ends(child), Some(3));
    let told = "first\r\nlast\r\nlastbyte: the process has ended: exit 3\r\n";
    assert_eq!(pty.seen, told);
    assert!(pty.is_as_before());
}

#[test]
fn a_process_without_a_terminal_is_sent_lines() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--stdin-open"], "cat then exit 4");
    let (mut pty, child) = attach(&daemon, &id, &[]);
    pty.shows("; Ctrl-C leaves it running\r\n");
    assert!(pty.is_as_before());
    pty.types("line\n");
    pty.shows("line\r\nline\r\n");
    pty.types("\x04");
    assert_eq!(pty.ends(child), Some(4));
}

#[test]
fn an_interactive_start_can_be_attached_to_at_once_or_later() {
    let daemon = Daemon::start();
    let size = "stty size; read line; exit 8";
    let mut pty = Pty::new(31, 91);
    let child = pty.run(daemon.lastbyte(&["start", "--attach", size]));
    pty.shows("; Ctrl-\\ detaches\r\n");
    pty.shows("31 91\r\n");
    pty.types("\r");
    assert_eq!(pty.ends(child), Some(8));
    assert!(pty.is_as_before());

    let mut pty = Pty::new(31, 91);
    let child = pty.run(daemon.lastbyte(&["start", "-i", size]));
    assert_eq!(pty.ends(child), Some(0));
    let id = pty.seen.lines().next().unwrap().trim_end().to_owned();
    let told = format!(
        "{id}\r\nlastbyte: use `lastbyte attach {}` to type on its terminal\r\n",
        &id[28..]
    );
    assert_eq!(pty.seen, told);
    daemon.result(&["wait", &id, "--pattern", "31 91", "--timeout", "60s"]);
    let (mut pty, child) = attached(&daemon, &id);
    pty.shows("31 91\r\n");
    pty.types("\r");
    assert_eq!(pty.ends(child), Some(8));
}

/// A title sequence whose end was dropped does not hide the text after the gap.
#[test]
fn a_gap_ends_an_unfinished_control_sequence() {
    let daemon = Daemon::start();
    let child = lastbyte_testkit::testchild();
    let text = format!(
        "printf 'begun\\033]0;title'; head -c 5000000 /dev/zero | tr '\\0' x; printf '\\nlast'; exec {} hold",
        child.display()
    );
    let start = [&["start"], &TTY[..], &["--quota", "256KiB", &text]].concat();
    let id = daemon.result(&start);
    let id = id.trim();
    daemon.result(&["wait", id, "--pattern", "last", "--timeout", "60s"]);
    let (mut pty, child) = attached(&daemon, id);
    pty.shows("x\r\nlast");
    assert!(!pty.seen.contains("\x1b]"), "{:?}", pty.seen);
    pty.types(DETACH);
    assert_eq!(pty.ends(child), Some(0));
}

/// It turns to single keys for its prompt, and misses the end of input that was typed long before.
#[test]
fn a_shell_without_input_ends() {
    let daemon = Daemon::start();
    let shell = "sleep 0.3; exec bash --norc -i";
    let mut command = daemon.lastbyte(&["start", "--attach", shell]);
    command.stdin(Stdio::null());
    assert_eq!(finish(command).code, Some(0));
}
