use crate::daemon::Daemon;

#[test]
fn a_forgotten_process_is_not_listed() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "exit 0");
    daemon.result(&["wait", &id]);
    daemon.check(&["forget", &id], 0, "", "");
    assert_eq!(daemon.result(&["ps", "--json"]), "");
}

#[test]
fn a_running_process_is_forgotten_only_with_stop() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    daemon.fixture.anchor.wait_for(1);
    let refused = daemon.finish(&["forget", &id]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(125), ""), "{refused:?}");
    daemon.check(&["forget", "--stop", &id], 0, "", "");
    daemon.fixture.anchor.wait_for_at_most(0);
}
