use std::ffi::OsString;
use std::fs;
use std::process::Stdio;

use rustix::process::{Signal, geteuid};

use crate::harness::{Fixture, expect, finish, send, start};

const NONE: Vec<OsString> = Vec::new();

#[test]
fn a_run_leaves_no_files_behind() {
    let fixture = Fixture::new();
    let mut child = start(fixture.run_testchild("print out then hold"));
    expect(child.stdout.as_mut().unwrap(), "out");
    assert_eq!(fixture.folders().len(), 1, "while it runs its output is kept there");
    fixture.anchor.wait_for(1);
    fixture.anchor.tell("exit 0");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(fixture.folders(), NONE);
}

#[test]
fn a_run_with_a_background_child_leaves_no_files_behind() {
    let fixture = Fixture::new();
    assert_eq!(finish(fixture.run_testchild("leave-chatty-holder 1")).code, Some(0));
    assert_eq!(fixture.folders(), NONE);
}

#[test]
fn the_files_of_killed_runs_are_removed_and_those_of_live_ones_kept() {
    let fixture = Fixture::new();
    let mut living = start(fixture.run_testchild("print living then hold"));
    expect(living.stdout.as_mut().unwrap(), "living");
    let of_the_living = fixture.folders();
    let mut killed = start(fixture.run_testchild("print killed then hold"));
    expect(killed.stdout.as_mut().unwrap(), "killed");
    send(&killed, Signal::KILL);
    killed.wait().unwrap();
    assert_eq!(fixture.folders().len(), 2);
    assert_eq!(finish(fixture.run(&["true"])).code, Some(0));
    assert_eq!(fixture.folders(), of_the_living);
    fixture.anchor.wait_for(1);
    fixture.anchor.tell("exit 0");
    living.wait().unwrap();
}

#[test]
fn without_a_usable_home_files_are_in_the_temporary_directory() {
    let fixture = Fixture::new();
    let temp = fixture.home.path().join("temp");
    fs::create_dir(&temp).unwrap();
    for home in [None, Some("/dev/null"), Some("/proc"), Some("relative")] {
        let mut command = fixture.run(&["ls -d \"$TMPDIR\"/lastbyte-*/runs/*-*/logs | wc -l"]);
        command.env_remove("XDG_STATE_HOME").env_remove("HOME").env("TMPDIR", &temp);
        if let Some(home) = home {
            command.env("HOME", home);
        }
        let finished = finish(command);
        assert_eq!((finished.code, finished.stdout.trim()), (Some(0), "1"), "{home:?}");
    }
    let runs = temp.join(format!("lastbyte-{}/runs", geteuid().as_raw()));
    let left: Vec<_> =
        fs::read_dir(runs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
}

#[test]
fn a_missing_place_for_files_is_125_and_named() {
    let fixture = Fixture::new();
    let mut command = fixture.run(&["echo never >&2"]);
    command.env("XDG_STATE_HOME", "/dev/null").env("TMPDIR", "/dev/null").stdin(Stdio::null());
    let finished = finish(command);
    assert_eq!(finished.code, Some(125));
    let uid = geteuid().as_raw();
    let why = "Not a directory (os error 20)";
    let text = format!(
        "lastbyte: cannot create a directory for the output: /dev/null/lastbyte: {why}; /dev/null/lastbyte-{uid}: {why}\n"
    );
    assert_eq!(finished.stderr, text);
}

/// If a log cannot grow, output is lost, but not the command or the program.
#[test]
fn a_file_size_limit_does_not_end_the_command() {
    let fixture = Fixture::new();
    let script = "ulimit -f 100; exec $LASTBYTE run -- $TESTCHILD write-bytes 1000000";
    let finished = finish(fixture.shell(script));
    match finished.code {
        // All of it was read from memory in time.
        Some(0) => assert_eq!(finished.stderr, ""),
        Some(125) => assert!(finished.stderr.contains("output were lost"), "{finished:?}"),
        _ => panic!("{:?} {}", finished.code, finished.stderr),
    }
}
