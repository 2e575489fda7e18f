mod receipt;

use lastbyte_testkit::eventually;

use crate::daemon::Daemon;

#[test]
fn a_process_is_shown_with_its_ending_and_survivors() {
    // Holders are looked for so briefly that a busy machine may not find them.
    eventually("the holders are found in time", || {
        let daemon = Daemon::start();
        let options = ["--session", "s", "--label", "a=b"];
        let id = daemon.testchild(&options, "print abc then leave-silent-holder");
        assert_eq!(daemon.finish(&["wait", &id]).code, Some(0));
        let pid = daemon.fixture.anchor.wait_for(1)[0];
        let shown = daemon.result(&["show", &id]);
        let has = |line: &str| shown.lines().any(|shown| shown == line);
        for line in [
            &format!("id         {id}"),
            "phase      ended",
            "ending     exit 0",
            "output     3 bytes",
            "session    s",
            "label      a=b",
            &format!("survivor   testchild (pid {pid})"),
        ] {
            assert!(has(line), "{line:?} is not in\n{shown}");
        }
        has(&format!("held by    testchild (pid {pid})"))
    });
}

#[test]
fn the_log_file_is_named_while_it_exists() {
    let daemon = Daemon::start();
    let named = |id: &str| {
        let shown = daemon.result(&["show", id]);
        shown.lines().find_map(|line| line.strip_prefix("log file   ")).map(str::to_owned)
    };
    let running = daemon.testchild(&[], "print abc then hold");
    daemon.result(&["wait", &running, "--pattern", "abc"]);
    let file = named(&running).expect("its output is in a file");
    assert_eq!(std::fs::read(file).unwrap(), b"abc");
    let long = daemon.testchild(&[], "write-bytes 100000");
    daemon.result(&["wait", &long]);
    let file = named(&long).expect("its output is in a file");
    assert_eq!(std::fs::metadata(file).unwrap().len(), 100_000);
    let short = daemon.testchild(&[], "print abc");
    daemon.result(&["wait", &short]);
    eventually("its file is given back", || named(&short).is_none());
}

#[test]
fn an_unknown_process_is_refused() {
    let daemon = Daemon::start();
    let id = "01900000-0000-7000-8000-000000000000";
    let finished = daemon.finish(&["show", id]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(125), ""), "{finished:?}");
    assert!(finished.stderr.contains(id), "{finished:?}");
}

#[test]
fn an_ended_process_is_shown_with_what_it_used() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "print abc");
    daemon.result(&["wait", &id]);
    let shown = daemon.result(&["show", &id]);
    let cpu = shown.lines().find_map(|line| line.strip_prefix("cpu        ")).expect("a line");
    assert!(cpu.contains("s user, ") && cpu.ends_with("s system"), "{shown}");
    assert!(cpu.starts_with(|first: char| first.is_ascii_digit()), "{shown}");
}

#[test]
fn the_processor_time_of_a_stopped_process_is_a_lower_bound() {
    let daemon = Daemon::start();
    let stopped = daemon.testchild(&[], "hold");
    daemon.result(&["stop", &stopped]);
    let timed_out = daemon.testchild(&["--timeout", "10ms"], "hold");
    daemon.finish(&["wait", &timed_out]);
    for id in [stopped, timed_out] {
        let shown = daemon.result(&["show", &id]);
        assert!(shown.contains("\ncpu        at least 0."), "{shown}");
    }
}
