use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use lastbyte_testkit::pattern_bytes;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::harness::{Fixture, expect, finish, start};

#[test]
fn input_reaches_the_command_as_it_arrives() {
    let fixture = Fixture::new();
    let mut command = fixture.run_testchild("cat");
    command.stdin(Stdio::piped());
    let mut child = start(command);
    let mut input = child.stdin.take().unwrap();
    for text in ["one\n", "two\n"] {
        input.write_all(text.as_bytes()).unwrap();
        expect(child.stdout.as_mut().unwrap(), text);
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn fifty_megabytes_pass_unchanged() {
    let fixture = Fixture::new();
    let bytes = pattern_bytes(0..50_000_000);
    let mut command = fixture.run(&["cat"]);
    command.stdin(Stdio::piped());
    let mut child = start(command);
    let mut input = child.stdin.take().unwrap();
    let mut output = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            input.write_all(&bytes).unwrap();
            drop(input);
        });
        child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
    });
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(output == bytes, "{} bytes came back", output.len());
}

#[test]
fn empty_closed_or_unreadable_input_is_an_end_of_file() {
    let fixture = Fixture::new();
    for redirection in ["</dev/null", "<&-", "</", "0>/dev/null"] {
        let script = format!(r#"exec "$LASTBYTE" run 'cat; echo end' {redirection}"#);
        let finished = finish(fixture.shell(&script));
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "end\n"), "{redirection}");
    }
}

#[test]
fn a_terminal_is_not_the_commands_input() {
    let fixture = Fixture::new();
    let (_controller, terminal) = terminal();
    let mut command = fixture.run(&["cat; echo end"]);
    command.stdin(terminal);
    assert_eq!(finish(command).stdout, "end\n");
}

#[test]
fn unread_input_does_not_keep_the_program_running() {
    let fixture = Fixture::new();
    let mut command = fixture.run(&["exit 3"]);
    command.stdin(Stdio::piped());
    let mut child = start(command);
    let input = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(3));
    drop(input);
}

#[test]
fn input_is_not_buffered_while_the_command_does_not_read() {
    let fixture = Fixture::new();
    let mut command = fixture.run_testchild("hold");
    command.stdin(Stdio::piped());
    let mut child = start(command);
    fixture.anchor.wait_for(1);
    let written = write_until_full(child.stdin.take().unwrap().into());
    assert!(written < 1 << 20, "{written} bytes were taken for a command that reads none");
    fixture.anchor.tell("exit 0");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn writing_to_a_command_that_closed_its_input_is_a_broken_pipe() {
    let fixture = Fixture::new();
    let mut command = fixture.run_testchild("close-stdin then hold");
    command.stdin(Stdio::piped());
    let mut child = start(command);
    fixture.anchor.wait_for(1);
    let mut input = child.stdin.take().unwrap();
    let error = loop {
        if let Err(error) = input.write_all(&[b'x'; 4096]) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    fixture.anchor.tell("exit 0");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Writes until the pipe has accepted nothing for a while; returns how many bytes it took.
fn write_until_full(input: OwnedFd) -> u64 {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let flags = rustix::fs::fcntl_getfl(&input).unwrap();
    rustix::fs::fcntl_setfl(&input, flags | rustix::fs::OFlags::NONBLOCK).unwrap();
    let mut written = 0;
    loop {
        let a_while = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
        let mut polled = [PollFd::new(&input, PollFlags::OUT)];
        if poll(&mut polled, Some(&a_while)).unwrap() == 0 || written > 1 << 24 {
            return written;
        }
        written += rustix::io::write(&input, &[b'x'; 4096]).unwrap_or(0) as u64;
    }
}

fn terminal() -> (OwnedFd, OwnedFd) {
    use rustix::fs::{Mode, OFlags};
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let terminal = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    (controller, terminal)
}
