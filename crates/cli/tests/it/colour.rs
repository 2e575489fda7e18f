use crate::daemon::Daemon;
use crate::harness::finish;

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[33m";

/// What a command shows on a terminal, with these variables.
fn on_a_terminal(daemon: &Daemon, variables: &str, command: &str) -> String {
    let script = format!(r#""$LASTBYTE" run --tty "TERM=xterm {variables} $LASTBYTE {command}""#);
    let finished = finish(daemon.fixture.shell(&script));
    assert!(!finished.stdout.is_empty(), "{finished:?}");
    finished.stdout
}

#[test]
fn a_terminal_has_colours_by_meaning() {
    let daemon = Daemon::start();
    let failed = daemon.result(&["start", "exit 3"]);
    daemon.finish(&["wait", "last"]);
    let left = daemon.testchild(&[], "leave-silent-holder");
    daemon.fixture.anchor.wait_for(1);
    daemon.finish(&["wait", &left]);
    let running = daemon.testchild(&[], "hold");
    daemon.fixture.anchor.wait_for(2);
    let listed = on_a_terminal(&daemon, "", "ps");
    for want in [
        format!("{RED}exit 3\u{1b}[0m"),
        format!("{GREEN}running\u{1b}[0m"),
        format!("{YELLOW}exit 0, survivors\u{1b}[0m"),
    ] {
        assert!(listed.contains(&want), "{want:?} in {listed:?}");
    }
    let shown = on_a_terminal(&daemon, "", &format!("show {}", failed.trim()));
    assert!(shown.contains(&format!("{RED}exit 3")), "{shown:?}");
    let shown = on_a_terminal(&daemon, "", &format!("show {running}"));
    assert!(shown.contains(&format!("{GREEN}running")), "{shown:?}");
    assert!(on_a_terminal(&daemon, "", "doctor").contains(&format!("{GREEN}yes")));
    let stopped = on_a_terminal(&daemon, "", &format!("stop {running}"));
    assert!(stopped.contains(&format!("{GREEN}none")), "{stopped:?}");
}

#[test]
fn nothing_is_coloured_where_nobody_wants_it() {
    let daemon = Daemon::start();
    daemon.finish(&["start", "exit 3"]);
    daemon.finish(&["wait", "last"]);
    for (variables, command) in [
        ("NO_COLOR=1", "ps"),
        ("NO_COLOR=1", "show last"),
        ("TERM=dumb", "ps"),
        ("", "--color never ps"),
        ("", "ps --color=never"),
        ("CLICOLOR_FORCE=1", "ps --json"),
        ("CLICOLOR_FORCE=1", "show last --json --color always"),
        ("CLICOLOR_FORCE=1", "doctor --json"),
        ("", "ps --help"),
        ("", "ps --wrong"),
    ] {
        let shown = on_a_terminal(&daemon, variables, command);
        assert!(!shown.contains('\u{1b}'), "{variables} {command}: {shown:?}");
    }
    assert!(!daemon.result(&["ps"]).contains('\u{1b}'), "in a pipe");
}

#[test]
fn colours_can_be_forced_into_a_pipe() {
    let daemon = Daemon::start();
    daemon.finish(&["start", "exit 3"]);
    daemon.finish(&["wait", "last"]);
    assert!(daemon.result(&["ps", "--color", "always"]).contains(RED));
    let mut forced = daemon.lastbyte(&["ps"]);
    forced.env("CLICOLOR_FORCE", "1");
    assert!(finish(forced).stdout.contains(RED));
}
