use std::process::Stdio;

use crate::harness::{Fixture, finish, start};

#[test]
fn a_command_that_times_out_is_stopped_with_124() {
    let fixture = Fixture::new();
    for (option, silent) in [("--timeout", ""), ("--idle-timeout", " without output")] {
        let script =
            format!(r#"exec "$LASTBYTE" run {option} 1s -- "$TESTCHILD" print out then hold"#);
        let finished = finish(fixture.shell(&script));
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(124), "out"), "{option}");
        assert_eq!(finished.stderr, format!("lastbyte: timed out after 1s{silent}; stopped\n"));
        fixture.anchor.wait_for_at_most(0);
    }
}

#[test]
fn a_command_that_exits_with_0_after_its_timeout_still_timed_out() {
    let fixture = Fixture::new();
    let script = r#"exec "$LASTBYTE" run --timeout 200ms -- "$TESTCHILD" trap 15 exit 0 then hold"#;
    assert_eq!(finish(fixture.shell(script)).code, Some(124));
}

#[test]
fn a_command_that_keeps_writing_is_not_idle() {
    let fixture = Fixture::new();
    let script = r#"exec "$LASTBYTE" run --idle-timeout 2s 'for i in 1 2 3 4 5 6; do echo $i; sleep 0.4; done'"#;
    let finished = finish(fixture.shell(script));
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(0), "1\n2\n3\n4\n5\n6\n"));
}

#[test]
fn input_that_never_ends_does_not_delay_a_timeout() {
    let fixture = Fixture::new();
    let mut command = fixture.run(&["--timeout", "100ms", "exec sleep 60"]);
    command.stdin(Stdio::piped());
    let mut child = start(command);
    let input = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(124));
    drop(input);
}

/// The ending that `--json` prints for a command that timed out.
fn ending_of(options: &str, actions: &str) -> serde_json::Value {
    let fixture = Fixture::new();
    let script =
        format!(r#"exec "$LASTBYTE" run --json --timeout 1s {options} -- "$TESTCHILD" {actions}"#);
    let finished = finish(fixture.shell(&script));
    assert_eq!(finished.code, Some(124), "{}", finished.stderr);
    let process: serde_json::Value = serde_json::from_str(finished.stderr.trim()).expect("JSON");
    process["ending"].clone()
}

#[test]
fn the_stop_signal_can_be_chosen() {
    let ending = ending_of("--stop-signal USR1", "trap 10 exit 7 then hold");
    assert_eq!(ending["status"]["code"], 7, "{ending}");
    let ending = ending_of("--stop-signal 2", "hold");
    assert_eq!(ending["status"]["signal"], 2, "{ending}");
}

#[test]
fn a_command_that_ignores_the_signal_is_killed_after_the_grace() {
    let ending = ending_of("--grace 100ms", "ignore 15 then hold");
    assert_eq!(
        (&ending["status"]["signal"], &ending["cause"]["escalated"]),
        (&9.into(), &true.into())
    );
    let ending = ending_of("--grace 0s", "trap 15 exit 7 then hold");
    assert_eq!(ending["status"]["signal"], 9, "no grace at all: {ending}");
}

/// The leader obeys the signal and its child does not: the child is killed before we exit.
#[test]
fn a_timeout_also_stops_what_outlives_the_command() {
    let fixture = Fixture::new();
    let script = r#"exec "$LASTBYTE" run --timeout 1s --grace 300ms -- "$TESTCHILD" \
        background ignore 15 then close-stdout then close-stderr then hold end then hold"#;
    assert_eq!(finish(fixture.shell(script)).code, Some(124));
    fixture.anchor.wait_for_at_most(0);
}
