use std::io::Write;
use std::process::Stdio;

use lastbyte_testkit::pattern_bytes;

use crate::daemon::Daemon;
use crate::harness::{finish, start};

#[test]
fn text_is_written_unchanged() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--stdin-open"], "cat");
    daemon.check(&["write", &id, "a b"], 0, "", "");
    daemon.check(&["write", &id, "--line", "c"], 0, "", "");
    daemon.check(&["write", &id, "--close", "end", "--json"], 0, "{\"accepted\":8}\n", "");
    assert_eq!(daemon.result(&["logs", "-f", &id]), "a bc\nend");
}

#[test]
fn keys_are_typed_after_the_text() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--stdin-open"], "cat");
    daemon.check(&["write", &id, "a", "--key", "Enter", "--key", ",", "--key", "b"], 0, "", "");
    let refused = finish(daemon.lastbyte(&["write", &id, "--key", "C-c"]));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("signal INT"), "{refused:?}");
    daemon.check(&["write", &id, "--key", "Tab", "--close"], 0, "", "");
    assert_eq!(daemon.result(&["logs", "-f", &id]), "a\n,b\t");
    let id = daemon.testchild(&["--tty", "24x80"], "print up then cat");
    daemon.result(&["wait", &id, "--pattern", "up"]);
    daemon.result(&["write", &id, "--key", "C-c"]);
    daemon.check(&["wait", &id], 130, "", "");
}

#[test]
fn all_of_standard_input_is_passed_on() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--stdin-open"], "cat");
    let mut command = daemon.lastbyte(&["write", &id, "--close"]);
    command.stdin(Stdio::piped());
    let mut writer = start(command);
    // Taken, so that it is closed after the last byte.
    let mut stdin = writer.stdin.take().unwrap();
    stdin.write_all(&pattern_bytes(0..5_000_000)).unwrap();
    drop(stdin);
    let output = writer.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
    let output = start(daemon.lastbyte(&["logs", "-f", &id])).wait_with_output().unwrap();
    assert!(output.stdout == pattern_bytes(0..5_000_000));
}

#[test]
fn a_retry_does_not_write_accepted_bytes_again() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--stdin-open"], "cat");
    daemon.result(&["write", &id, "--offset", "0", "abc"]);
    daemon.result(&["write", &id, "--offset", "0", "abcdef", "--close"]);
    assert_eq!(daemon.result(&["logs", "-f", &id]), "abcdef");
}

#[test]
fn a_process_without_input_refuses_a_write() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    let finished = finish(daemon.lastbyte(&["write", &id, "x"]));
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(125), ""), "{finished:?}");
}
