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
        "lastbyte: still running: testchild (pid {pid}); its output is closed; its next write will fail (use `lastbyte start`)\n"
    );
    assert_eq!(finished.stderr, line);
    assert!(is_alive(*pid));
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
