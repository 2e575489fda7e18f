//! Without a terminal of our own.

use std::io::{Read, Write};
use std::process::Stdio;

use lastbyte_testkit::pattern_bytes;

use super::TTY;
use crate::daemon::Daemon;
use crate::harness::{Finished, start};

/// Attaches with this input, and returns the result.
fn piped(daemon: &Daemon, id: &str, input: &[u8]) -> Finished {
    let mut command = daemon.lastbyte(&["attach", id]);
    command.stdin(Stdio::piped());
    let mut child = start(command);
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn finished(code: i32, stdout: &str, stderr: &str) -> Finished {
    Finished { code: Some(code), stdout: stdout.into(), stderr: stderr.into() }
}

#[test]
fn piped_input_and_output_are_passed_on_completely() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--stdin-open"], "cat then print last then exit 5");
    assert_eq!(piped(&daemon, &id, b"a \x1c b\n"), finished(5, "a \x1c b\nlast", ""));
    let id = daemon.testchild(&TTY, "cat then exit 6");
    assert_eq!(piped(&daemon, &id, b"line\n"), finished(6, "line\r\nline\r\n", ""));
}

#[test]
fn megabytes_go_both_ways_at_once() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&["--stdin-open"], "cat");
    let input = pattern_bytes(0..4 << 20);
    let mut command = daemon.lastbyte(&["attach", &id]);
    command.stdin(Stdio::piped());
    let mut child = start(command);
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut output = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            to.write_all(&input).unwrap();
            drop(to);
        });
        from.read_to_end(&mut output).unwrap();
    });
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(output == input, "{} bytes of {}", output.len(), input.len());
}

#[test]
fn a_process_without_input_is_only_shown() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "print shown then hold");
    let mut child = start(daemon.lastbyte(&["attach", &id]));
    crate::harness::expect(child.stdout.as_mut().unwrap(), "shown");
    daemon.fixture.anchor.wait_for(1);
    daemon.fixture.anchor.tell("exit 9");
    let output = child.wait_with_output().unwrap();
    let told = format!("lastbyte: attached to {}, which takes no input\n", &id[28..]);
    assert_eq!((output.status.code(), output.stderr), (Some(9), told.into_bytes()));
}

#[test]
fn continuing_after_the_last_byte_misses_and_repeats_nothing() {
    const LENGTH: u64 = 3_000_000;
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], &format!("write-bytes {LENGTH} then hold"));
    let mut all = Vec::new();
    for taken in [1, 4_096, 100_000, 1_234_567] {
        let from = all.len().to_string();
        let mut child = start(daemon.lastbyte(&["attach", &id, "--from", &from, "--read-only"]));
        let mut bytes = vec![0; taken];
        child.stdout.as_mut().unwrap().read_exact(&mut bytes).unwrap();
        all.extend(bytes);
        // A reader that goes away is not an error.
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    daemon.fixture.anchor.wait_for(1);
    daemon.fixture.anchor.tell("exit 0");
    let rest = start(daemon.lastbyte(&["attach", &id, "--from", &all.len().to_string()]));
    let rest = rest.wait_with_output().unwrap();
    all.extend(rest.stdout);
    assert!(all == pattern_bytes(0..LENGTH), "{} bytes of {LENGTH}", all.len());
}

#[test]
fn it_ends_when_its_reader_goes_away_even_without_output() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "print shown then hold");
    let mut child = start(daemon.lastbyte(&["attach", &id, "--read-only"]));
    crate::harness::expect(child.stdout.as_mut().unwrap(), "shown");
    drop(child.stdout.take());
    lastbyte_testkit::eventually("the program ends", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    daemon.fixture.anchor.wait_for(1);
}

#[test]
fn attaching_to_an_unknown_id_fails() {
    let daemon = Daemon::start();
    let finished = daemon.finish(&["attach", "nosuch"]);
    assert_eq!(finished.code, Some(125), "{finished:?}");
}
