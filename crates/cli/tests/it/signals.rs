use lastbyte_testkit::{SignalSets, eventually};
use rustix::process::Signal;

use crate::daemon::Daemon;
use crate::harness::{Fixture, expect, finish, send, start};

#[test]
fn a_signal_is_passed_on_to_the_command() {
    let fixture = Fixture::new();
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT] {
        let number = signal.as_raw();
        let actions = format!("trap {number} exit 7 then print ready then hold");
        let mut child = start(fixture.run_testchild(&actions));
        expect(child.stdout.as_mut().unwrap(), "ready");
        send(&child, signal);
        assert_eq!(child.wait().unwrap().code(), Some(7), "{signal:?}");
    }
}

#[test]
fn a_command_killed_by_a_signal_is_reported() {
    let fixture = Fixture::new();
    let mut child = start(fixture.run_testchild("print ready then hold"));
    expect(child.stdout.as_mut().unwrap(), "ready");
    send(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn the_second_signal_kills_the_whole_tree() {
    let fixture = Fixture::new();
    let tree = "setsid-background ignore 2 15 then hold end";
    let actions =
        format!("{tree} then ignore 15 then trap 2 print first then print ready then hold");
    let mut child = start(fixture.run_testchild(&actions));
    expect(child.stdout.as_mut().unwrap(), "ready");
    fixture.anchor.wait_for(2);
    send(&child, Signal::INT);
    expect(child.stdout.as_mut().unwrap(), "first");
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(137));
    fixture.anchor.wait_for_at_most(0);
}

#[test]
fn a_signal_works_while_nobody_reads_the_output() {
    let fixture = Fixture::new();
    let actions = "trap 15 exit 7 then write-bytes 1000000 then eprint ready then hold";
    let mut child = start(fixture.run_testchild(actions));
    expect(child.stderr.as_mut().unwrap(), "ready");
    send(&child, Signal::TERM);
    fixture.anchor.wait_for_at_most(0);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(7), 1_000_000));
}

#[test]
fn a_signal_after_the_commands_end_ends_the_program() {
    let fixture = Fixture::new();
    let mut child = start(fixture.run(&["head -c 1000000 /dev/zero; echo end >&2"]));
    expect(child.stderr.as_mut().unwrap(), "end\n");
    // The first signal may still find the command; unread output keeps us running either way.
    lastbyte_testkit::eventually("the program ends", || {
        send(&child, Signal::TERM);
        matches!(child.try_wait(), Ok(Some(_)))
    });
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert_eq!(fixture.folders(), Vec::<std::ffi::OsString>::new());
}

#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let fixture = Fixture::new();
    let actions = "trap 2 print int then trap 15 exit 9 then print ready then hold";
    let script = format!(r#"trap '' INT; exec "$LASTBYTE" run -- "$TESTCHILD" {actions}"#);
    let mut child = start(fixture.shell(&script));
    expect(child.stdout.as_mut().unwrap(), "ready");
    send(&child, Signal::INT);
    send(&child, Signal::TERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(9), b"".as_slice()));
}

#[test]
fn a_signal_that_was_blocked_at_the_start_works() {
    let fixture = Fixture::new();
    let script = r#"exec env --block-signal=TERM "$LASTBYTE" run -- "$TESTCHILD" trap 15 exit 9 then print ready then hold"#;
    let mut child = start(fixture.shell(script));
    expect(child.stdout.as_mut().unwrap(), "ready");
    send(&child, Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn the_status_is_known_even_if_sigchld_was_ignored_at_the_start() {
    let fixture = Fixture::new();
    let script = r#"exec env --ignore-signal=CHLD "$LASTBYTE" run --json 'exit 3'"#;
    let finished = finish(fixture.shell(script));
    assert_eq!(finished.code, Some(3));
    // CPU times come only with the status.
    assert!(finished.stderr.contains("user_ns"), "{finished:?}");
}

/// Otherwise SIGCHLD could interrupt the thread that answers for another child. With a keeper, orphans
/// are not the server's to reap.
#[test]
fn only_the_thread_that_reaps_orphans_gets_sigchld() {
    for (options, want) in [(&[][..], &[][..]), (&["--no-keeper"], &["orphans\n"])] {
        let daemon = Daemon::with(options);
        let id = daemon.testchild(&[], "exit 0");
        daemon.result(&["wait", &id]);
        let tasks = format!("/proc/{}/task", daemon.worker());
        let heard_by = || {
            let tasks = std::fs::read_dir(&tasks).unwrap().flatten().map(|task| task.path());
            let hears = |task: &std::path::PathBuf| {
                let status = std::fs::read_to_string(task.join("status")).unwrap_or_default();
                !status.is_empty() && !SignalSets::from_status(&status).blocked.contains(&17)
            };
            let name =
                |task: std::path::PathBuf| std::fs::read_to_string(task.join("comm")).unwrap();
            tasks.filter(hears).map(name).collect::<Vec<_>>()
        };
        eventually("it waits for more", || heard_by() == want);
    }
}
