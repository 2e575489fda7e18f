use crate::daemon::Daemon;
use crate::harness::finish;

/// Nothing is ever coloured, so there is nothing to turn off.
#[test]
fn nothing_is_coloured_even_on_a_terminal() {
    let daemon = Daemon::start();
    daemon.result(&["start", "true"]);
    for no_color in ["", "NO_COLOR=1 "] {
        for command in ["ps", "show last", "ps --help", "ps --wrong"] {
            let script = format!(r#""$LASTBYTE" run --tty "{no_color}$LASTBYTE {command}""#);
            let finished = finish(daemon.fixture.shell(&script));
            assert!(!finished.stdout.is_empty(), "{finished:?}");
            assert!(!finished.stdout.contains('\u{1b}'), "{finished:?}");
        }
    }
}
