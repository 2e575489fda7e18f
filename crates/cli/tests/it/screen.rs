//! `lastbyte screen`.

use serde_json::Value;

use crate::daemon::Daemon;
use crate::harness::finish;

#[test]
fn the_screen_is_printed_without_what_was_overwritten() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--tty=4x20"], r"print 10%\r\x1b[32m100%\x1b[0m\r\ndone\r\n");
    daemon.result(&["wait", &id]);
    assert_eq!(daemon.result(&["screen", &id]), "100%\ndone\n");
    assert_eq!(daemon.result(&["screen", &id, "--at", "3"]), "10%\n");
    assert_eq!(daemon.result(&["screen", &id, "--size", "1x2"]), "");
    let coloured = daemon.result(&["screen", &id, "--color", "always"]);
    assert_eq!(coloured, "\x1b[32m100%\x1b[0m\ndone\x1b[0m\n");
    let json: Value = serde_json::from_str(&daemon.result(&["screen", &id, "--json"])).unwrap();
    assert_eq!(
        (&json["content"]["screen"]["rows"], &json["content"]["screen"]["cursor"]["row"]),
        (&4.into(), &2.into())
    );
}

#[test]
fn a_screen_made_from_a_part_of_the_output_says_so() {
    let daemon = Daemon::start();
    let id = daemon.result(&["start", "yes 0123456789 | head -c 17000000; echo; echo end"]);
    let id = id.trim_end();
    daemon.result(&["wait", id]);
    let screen = finish(daemon.lastbyte(&["screen", id]));
    assert!(screen.stdout.ends_with("\nend\n"), "{}", screen.stdout);
    assert!(
        screen.stderr.starts_with("lastbyte: made from the output past byte "),
        "{}",
        screen.stderr
    );
}
