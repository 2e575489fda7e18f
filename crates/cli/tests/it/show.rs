use crate::daemon::Daemon;

#[test]
fn a_process_is_shown_with_its_ending_and_survivors() {
    let daemon = Daemon::start();
    let id = daemon
        .testchild(&["--session", "s", "--label", "a=b"], "print abc then leave-silent-holder");
    assert_eq!(daemon.finish(&["wait", &id]).code, Some(0));
    let pid = daemon.fixture.anchor.wait_for(1)[0];
    let shown = daemon.result(&["show", &id]);
    for line in [
        format!("id         {id}"),
        "phase      ended".into(),
        "ending     exit 0".into(),
        "output     3 bytes".into(),
        "session    s".into(),
        "label      a=b".into(),
        format!("held by    testchild (pid {pid})"),
        format!("survivor   testchild (pid {pid})"),
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line:?} is not in\n{shown}");
    }
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
    lastbyte_testkit::eventually("its file is given back", || named(&short).is_none());
}

#[test]
fn an_unknown_process_is_refused() {
    let daemon = Daemon::start();
    let id = "01900000-0000-7000-8000-000000000000";
    let finished = daemon.finish(&["show", id]);
    assert_eq!((finished.code, finished.stdout.as_str()), (Some(125), ""), "{finished:?}");
    assert!(finished.stderr.contains(id), "{finished:?}");
}
