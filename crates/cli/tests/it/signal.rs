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
    daemon.check(&["signal", &id, "9", "--json"], 1, json, "");
}

#[test]
fn a_signal_that_reached_nobody_is_not_a_success() {
    let daemon = Daemon::start();
    let ended = daemon.testchild(&["--name", "ended"], "exit 0");
    daemon.testchild(&["--name", "web"], "hold");
    daemon.fixture.anchor.wait_for(1);
    daemon.result(&["wait", &ended]);
    let not_sent = "SIGCONT was not sent: the process has ended\n";
    daemon.check(&["signal", &ended, "CONT"], 1, not_sent, "");
    let each = format!("ended  {not_sent}web    sent SIGCONT to the process and its group\n");
    daemon.check(&["signal", "ended", "web", "CONT"], 1, &each, "");
    let unknown = daemon.finish(&["signal", "ended", "zzzz", "CONT"]);
    assert_eq!(unknown.code, Some(125), "{unknown:?}");
    // A selection leaves ended processes out.
    daemon.check(
        &["signal", "--all", "CONT"],
        0,
        "web  sent SIGCONT to the process and its group\n",
        "",
    );
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
    daemon.check(&["signal", &id, "-KILL", "--json"], 1, json, "");
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
