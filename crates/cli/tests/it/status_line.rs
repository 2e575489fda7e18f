//! The line that says what is being waited for.

use crate::daemon::Daemon;
use crate::harness::LASTBYTE;

const CLEAR: &str = "\r\u{1b}[K";
const WAITING: &str = "waiting until everything has stopped";

/// The server itself provides the terminal.
#[test]
fn a_terminal_shows_what_takes_longer_than_a_second() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "ignore 15 then hold");
    daemon.fixture.anchor.wait_for(1);
    let stop = ["start", "--tty", "24x80", "--", &LASTBYTE, "--color", "never", "stop", &id];
    let stop = daemon.result(&[stop.as_slice(), &["--grace", "1h"]].concat());
    let line = format!(r"{WAITING} \([0-9]+s\)");
    let shown = ["wait", stop.trim(), "--timeout", "60s", "--pattern", &line];
    assert_eq!(daemon.finish(&shown).code, Some(0));
    daemon.result(&["stop", &id, "--grace", "0s"]);
    daemon.check(&["wait", stop.trim()], 0, "", "");
    let shown = daemon.result(&["logs", stop.trim()]);
    assert!(shown.starts_with(&format!("{CLEAR}{WAITING} (1s)")), "{shown:?}");
    let (_, after) = shown.rsplit_once(CLEAR).unwrap();
    assert!(after.starts_with("signalled"), "the line is removed: {shown:?}");
}

#[test]
fn a_pipe_gets_no_status_line() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "ignore 15 then hold");
    daemon.fixture.anchor.wait_for(1);
    let proof = daemon.result(&["stop", &id, "--grace", "1500ms"]);
    assert!(proof.starts_with("signalled"), "{proof}");
}
