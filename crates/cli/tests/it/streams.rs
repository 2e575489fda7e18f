use std::io::Read;

use lastbyte_testkit::{eventually, is_alive, pattern_bytes};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::harness::{Fixture, expect, finish, start};

#[test]
fn streams_to_the_same_file_keep_their_order() {
    let fixture = Fixture::new();
    let script = r#"exec "$LASTBYTE" run -- "$TESTCHILD" alternate 2000 2>&1"#;
    let output = start(fixture.shell(script)).wait_with_output().unwrap();
    let in_order: Vec<u8> = pattern_bytes(0..2000).into_iter().flat_map(|b| [b, b]).collect();
    assert!(output.stdout == in_order, "the order is lost");
}

#[test]
fn streams_to_different_files_stay_separate() {
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

/// The size of all logs of running programs.
fn logged(fixture: &Fixture) -> u64 {
    let logs = fixture.folders().into_iter().map(|name| fixture.runs().join(name).join("logs"));
    let files = logs.filter_map(|logs| std::fs::read_dir(logs).ok()).flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

/// When a whole quota of its output is unread, the command blocks, as on a pipe.
#[test]
fn a_late_reader_gets_every_byte() {
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
fn an_unread_stream_does_not_block_the_other() {
    let fixture = Fixture::new();
    let mut child = start(fixture.run_testchild("write-bytes 1000000 then eprint done"));
    expect(child.stderr.as_mut().unwrap(), "done");
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 1_000_000));
}

#[test]
fn a_nonblocking_output_is_waited_for() {
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
fn a_full_disk_ends_the_command_with_125() {
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
fn closed_streams_are_not_an_error() {
    let fixture = Fixture::new();
    let finished = finish(fixture.shell(r#""$LASTBYTE" run 'echo lost; exit 6' >&- 2>&- <&-"#));
    assert_eq!(finished.code, Some(6));
}
