//! The line that says what is being waited for.

use crate::daemon::Daemon;
use crate::harness::LASTBYTE;

const CLEAR: &str = "\r\u{1b}[K";
const STOPPING: &str = "stopping web (KILL in 59m): ";

/// The server itself provides the terminal.
#[test]
fn a_terminal_shows_what_takes_longer_than_a_second() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--name", "web", "--grace", "1h"], "ignore 15 then hold");
    daemon.fixture.anchor.wait_for(1);
    let stop = ["start", "--tty", "24x80", "--", &LASTBYTE, "--color", "never", "stop", &id];
    let stop = daemon.result(&stop);
    let line = r"stopping web \(KILL in [0-9]+m\): /";
    let shown = ["wait", stop.trim(), "--timeout", "60s", "--pattern", line];
    assert_eq!(daemon.finish(&shown).code, Some(0));
    daemon.result(&["stop", &id, "--grace", "0s"]);
    daemon.check(&["wait", stop.trim()], 0, "", "");
    let shown = daemon.result(&["logs", stop.trim()]);
    assert!(shown.starts_with(&format!("{CLEAR}{STOPPING}")), "{shown:?}");
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
