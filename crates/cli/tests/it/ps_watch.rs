//! `ps --watch`, on a terminal that the server itself provides.

use crate::daemon::Daemon;
use crate::harness::LASTBYTE;

const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l";
const LEAVE: &str = "\u{1b}[?25h\u{1b}[?1049l";

/// Starts a list that is redrawn only on changes; returns its id.
fn watch(daemon: &Daemon) -> String {
    let watch = ["--", &LASTBYTE, "ps", "--watch", "--interval", "10000h", "--color", "never"];
    daemon.result(&[&["start", "--tty", "24x80"], watch.as_slice()].concat()).trim_end().to_owned()
}

fn until_it_shows(daemon: &Daemon, id: &str, pattern: &str) {
    let waited = daemon.finish(&["wait", id, "--timeout", "60s", "--pattern", pattern]);
    assert_eq!(waited.code, Some(0), "{waited:?}");
}

#[test]
fn the_list_is_redrawn_on_changes() {
    let daemon = Daemon::start();
    let id = watch(&daemon);
    until_it_shows(&daemon, &id, "ID +AGE");
    let process = daemon.testchild(&[], "hold");
    daemon.fixture.anchor.wait_for(1);
    until_it_shows(&daemon, &id, &format!("{} +[0-9]+s +running", &process[28..]));
    daemon.fixture.anchor.tell("exit 3");
    until_it_shows(&daemon, &id, &format!("{} +[0-9]+s +ended +exit 3", &process[28..]));
}

#[test]
fn an_interrupt_restores_the_terminal() {
    let daemon = Daemon::start();
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let id = watch(&daemon);
        until_it_shows(&daemon, &id, "ID +AGE");
        daemon.result(&["signal", &id, signal]);
        daemon.check(&["wait", &id], code, "", "");
        let shown = daemon.result(&["logs", &id]);
        assert!(shown.starts_with(ENTER) && shown.ends_with(LEAVE), "{signal}: {shown:?}");
    }
}

#[test]
fn the_list_is_redrawn_at_a_new_size() {
    let daemon = Daemon::start();
    for _ in 0..3 {
        daemon.result(&["start", "true"]);
    }
    let watch = format!("{} ps --watch --interval 10000h --color never", *LASTBYTE);
    let script = format!("{watch} & read line; stty rows 3; wait");
    let id = daemon.result(&["start", "--tty", "24x80", "--stdin-open", &script]);
    until_it_shows(&daemon, id.trim(), "ID +AGE");
    daemon.result(&["write", id.trim(), "--line", ""]);
    until_it_shows(&daemon, id.trim(), "… and 3 more");
}

#[test]
fn without_a_terminal_it_is_refused() {
    let daemon = Daemon::start();
    let told = "lastbyte: --watch requires standard output to be a terminal; \
                `lastbyte events` prints a line for each change\n";
    daemon.check(&["ps", "--watch"], 2, "", told);
    assert_eq!(daemon.finish(&["ps", "--watch", "--json"]).code, Some(2));
    assert_eq!(daemon.finish(&["ps", "--interval", "1s"]).code, Some(2));
}
