use std::io::Read;

use lastbyte_testkit::{eventually, is_alive, pattern_bytes};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::harness::{Fixture, expect, finish, start};

#[test]
fn streams_that_lead_to_one_place_keep_their_order() {
    let fixture = Fixture::new();
    let script = r#"exec "$LASTBYTE" run -- "$TESTCHILD" alternate 2000 2>&1"#;
    let output = start(fixture.shell(script)).wait_with_output().unwrap();
    let in_order: Vec<u8> = pattern_bytes(0..2000).into_iter().flat_map(|b| [b, b]).collect();
    assert!(output.stdout == in_order, "the order is lost");
}

#[test]
fn streams_that_lead_apart_stay_apart() {
    let fixture = Fixture::new();
    let output = start(fixture.run_testchild("alternate 2000")).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let all = pattern_bytes(0..2000);
    assert!(output.stdout == all && output.stderr == all);
}

#[test]
fn output_appears_while_the_command_runs() {
    let fixture = Fixture::new();
    let mut child = start(fixture.run_testchild("print early then eprint too then hold"));
    expect(child.stdout.as_mut().unwrap(), "early");
    expect(child.stderr.as_mut().unwrap(), "too");
    assert_eq!(fixture.anchor.wait_for(1).len(), 1);
    fixture.anchor.tell("exit 4");
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

/// How much output lies in the logs of running programs.
fn logged(fixture: &Fixture) -> u64 {
    let logs = fixture.folders().into_iter().map(|name| fixture.runs().join(name).join("logs"));
    let files = logs.filter_map(|logs| std::fs::read_dir(logs).ok()).flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

/// The command waits, as it would for a pipe, once a quota of its output is unread.
#[test]
fn a_reader_that_comes_late_finds_every_byte() {
    const LEN: u64 = 80_000_000; // more than a log keeps
    let fixture = Fixture::new();
    let child = start(fixture.run_testchild(&format!("join then write-bytes {LEN}")));
    let writer = fixture.anchor.wait_for(1)[0];
    eventually("a quota of output is unread", || logged(&fixture) >= 64 << 20);
    assert!(is_alive(writer), "it has more to write");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == pattern_bytes(0..LEN), "{} of {LEN} bytes", output.stdout.len());
}

#[test]
fn a_stream_that_nobody_reads_does_not_hold_up_the_other() {
    let fixture = Fixture::new();
    let mut child = start(fixture.run_testchild("write-bytes 1000000 then eprint done"));
    expect(child.stderr.as_mut().unwrap(), "done");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 1_000_000));
}

#[test]
fn an_output_that_does_not_block_is_waited_for() {
    let fixture = Fixture::new();
    let (read, write) = pipe_with(PipeFlags::NONBLOCK | PipeFlags::CLOEXEC).unwrap();
    let flags = rustix::fs::fcntl_getfl(&read).unwrap();
    rustix::fs::fcntl_setfl(&read, flags - rustix::fs::OFlags::NONBLOCK).unwrap();
    let mut command = fixture.run_testchild("join then write-bytes 1000000");
    command.stdout(write);
    let mut child = start(command);
    let writer = fixture.anchor.wait_for(1)[0];
    eventually("there is more than the pipe takes", || !is_alive(writer));
    let mut output = Vec::new();
    std::fs::File::from(read).read_to_end(&mut output).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(output == pattern_bytes(0..1_000_000), "{} bytes", output.len());
}

#[test]
fn a_disk_that_is_full_is_our_failure_and_ends_the_command() {
    let fixture = Fixture::new();
    let finished = finish(
        fixture.shell(r#"exec "$LASTBYTE" run -- "$TESTCHILD" print x then hold >/dev/full"#),
    );
    assert_eq!(finished.code, Some(125));
    let text = "lastbyte: cannot write to standard output: No space left on device (os error 28)\n";
    assert_eq!(finished.stderr, text);
    fixture.anchor.wait_for_at_most(0);
}

#[test]
fn streams_that_are_closed_are_nobodys_trouble() {
    let fixture = Fixture::new();
    let finished = finish(fixture.shell(r#""$LASTBYTE" run 'echo lost; exit 6' >&- 2>&- <&-"#));
    assert_eq!(finished.code, Some(6));
}
