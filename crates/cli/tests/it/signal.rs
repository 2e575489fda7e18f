use crate::daemon::Daemon;

#[test]
fn a_signal_reaches_the_group_and_reports_it() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    daemon.fixture.anchor.wait_for(1);
    let told = "sent SIGINT to the process and its group\n";
    daemon.check(&["signal", &id, "INT"], 0, told, "");
    daemon.check(&["wait", &id], 130, "", "");
    let json = "{\"delivered\":{\"to\":\"nobody\"}}\n";
    daemon.check(&["signal", &id, "9", "--json"], 0, json, "");
}

#[test]
fn a_signal_can_be_given_by_number_and_with_a_dash() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    daemon.fixture.anchor.wait_for(1);
    daemon.check(&["signal", &id, "-40"], 0, "sent signal 40 to the process and its group\n", "");
    daemon.check(&["wait", &id], 168, "", "");
    let id = daemon.testchild(&["--stop-signal", "64"], "hold");
    daemon.fixture.anchor.wait_for(1);
    daemon.result(&["stop", &id, "--signal", "40"]);
    daemon.check(&["wait", &id], 168, "", "");
    let json = "{\"delivered\":{\"to\":\"nobody\"}}\n";
    daemon.check(&["signal", &id, "-KILL", "--json"], 0, json, "");
}

#[test]
fn an_invalid_signal_is_refused() {
    let daemon = Daemon::start();
    let finished = daemon.finish(&["signal", "last", "NONE"]);
    assert_eq!(finished.code, Some(2), "{finished:?}");
}

#[test]
fn a_signal_to_what_an_ended_process_left_counts_it() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "leave-silent-holder");
    daemon.fixture.anchor.wait_for(1);
    daemon.result(&["wait", &id]);
    let told = "sent SIGTERM to 1 process that it left running\n";
    daemon.check(&["signal", &id, "TERM"], 0, told, "");
}
