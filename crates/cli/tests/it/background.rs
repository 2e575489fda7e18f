use std::path::PathBuf;

use lastbyte_testkit::{eventually, is_alive};

use crate::harness::{Fixture, finish, start};

#[test]
fn a_background_child_is_named_and_lives_on() {
    let fixture = Fixture::new();
    let finished = finish(fixture.run_testchild("print done then leave-silent-holder"));
    let pids = fixture.anchor.wait_for(1);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "done"));
    let [pid] = pids.as_slice() else { panic!("one helper, not {pids:?}") };
    let line = format!(
        "lastbyte: still running: testchild (pid {pid}); its further output is discarded (`lastbyte start` keeps it)\n"
    );
    assert_eq!(finished.stderr, line);
    assert!(is_alive(*pid));
}

/// Runs a script that leaves a helper behind, which then writes more than a pipe holds.
#[track_caller]
fn lets_a_background_child_write(script: &str) {
    let fixture = Fixture::new();
    // Returns when nothing has the pipes to us open any more.
    let finished = finish(fixture.shell(script));
    let pids = fixture.anchor.wait_for(1);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let reader = reader_of(pids[0]);
    let lived = fixture.home.path().join("lived");
    fixture.anchor.tell("write-bytes 300000");
    fixture.anchor.tell("eprint more");
    fixture.anchor.tell(&format!("touch {}", lived.display()));
    eventually("it has written everything", || lived.exists());
    assert!(is_alive(reader), "it stays as long as a holder");
    fixture.anchor.tell("exit 0");
    eventually("the reader goes with the last holder", || !is_alive(reader));
}

/// The process that reads what this one writes to its standard output.
#[track_caller]
fn reader_of(holder: u32) -> u32 {
    let output = std::fs::read_link(format!("/proc/{holder}/fd/1")).unwrap();
    let is_reader = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        let has_it = || links_in(&format!("/proc/{pid}/fd")).contains(&output);
        // A terminal has another name on our end.
        let in_terminal = || output.starts_with("/dev/pts") && has_our_end(*pid, &output);
        name.is_ok_and(|name| name == "lastbyte-reader\n") && (has_it() || in_terminal())
    };
    let readers = || -> Vec<u32> {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(is_reader).collect()
    };
    // It gets its name last, and `run` does not wait for that.
    eventually("a reader is there", || !readers().is_empty());
    let [reader] = readers()[..] else { panic!("one reader of {output:?}, not {:?}", readers()) };
    let left = links_in(&format!("/proc/{reader}/fd"));
    assert!(left.len() <= 2, "it has nothing else open: {left:?}");
    assert_eq!(std::fs::read_link(format!("/proc/{reader}/cwd")).unwrap(), PathBuf::from("/"));
    reader
}

fn links_in(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect()
}

fn has_our_end(pid: u32, terminal: &std::path::Path) -> bool {
    let number = terminal.file_name().unwrap().to_str().unwrap();
    let infos = std::fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let mut infos = infos.filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    infos.any(|info| info.contains(&format!("tty-index:\t{number}\n")))
}

#[test]
fn a_background_child_can_write_after_run_has_ended() {
    lets_a_background_child_write("exec $LASTBYTE run -- $TESTCHILD leave-silent-holder");
}

#[test]
fn a_background_child_can_write_to_both_streams_at_once() {
    lets_a_background_child_write("exec $LASTBYTE run -- $TESTCHILD leave-silent-holder 2>&1");
}

#[test]
fn a_background_child_can_write_to_its_terminal_after_run_has_ended() {
    lets_a_background_child_write(
        "exec $LASTBYTE run --tty -- $TESTCHILD setsid-background hold end",
    );
}

#[test]
fn what_a_background_child_writes_at_once_is_still_delivered() {
    let fixture = Fixture::new();
    let finished = finish(fixture.run_testchild("leave-tail"));
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "tail"));
}

#[test]
fn a_background_child_that_holds_no_output_is_not_mentioned() {
    let fixture = Fixture::new();
    let actions = "background close-stdout then close-stderr then hold end then exit 0";
    let finished = finish(fixture.run_testchild(actions));
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""));
    assert!(is_alive(fixture.anchor.wait_for(1)[0]));
}

#[test]
fn the_message_about_a_background_child_starts_a_new_line() {
    let fixture = Fixture::new();
    let finished = finish(fixture.run_testchild("eprint unfinished then leave-silent-holder"));
    assert!(finished.stderr.starts_with("unfinished\nlastbyte: still running: "), "{finished:?}");
}

/// We have to reap orphans that end while the command runs.
#[test]
fn orphans_are_reaped_while_the_command_runs() {
    let fixture = Fixture::new();
    let child = start(fixture.run_testchild("double-fork-background exit 0 end then hold"));
    fixture.anchor.wait_for(1);
    let own = child.id();
    eventually("only the command is left", || lastbyte_testkit::children_of(own).len() == 1);
    fixture.anchor.tell("exit 0");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}
