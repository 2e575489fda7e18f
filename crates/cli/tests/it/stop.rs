use serde_json::Value;

use crate::daemon::Daemon;

#[test]
fn a_stop_ends_the_tree_and_prints_its_proof() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "setsid-background hold end then hold");
    let mut pids = daemon.fixture.anchor.wait_for(2);
    let proof: Value = serde_json::from_str(&daemon.result(&["stop", &id, "--json"])).unwrap();
    daemon.fixture.anchor.wait_for_at_most(0);
    let mut gone: Vec<u32> = serde_json::from_value(proof["gone"].clone()).unwrap();
    gone.sort_unstable();
    pids.sort_unstable();
    assert_eq!(gone, pids, "{proof}");
    assert_eq!(proof["left"], serde_json::json!([]));
    assert_eq!(proof["unattributed"], serde_json::json!([]));
    assert_eq!(proof["proved"], proof["reach"] == "leaf", "only a cgroup proves it");
    daemon.check(&["wait", &id], 143, "", "");
}

#[test]
fn a_stop_of_an_ended_process_has_nothing_to_signal() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "exit 0");
    daemon.result(&["wait", &id]);
    let proof = daemon.result(&["stop", &id]);
    let ended = format!("{} had already ended: exit 0", &id[28..]);
    let (first, rest) = proof.split_once('\n').unwrap();
    assert_eq!(first, ended);
    let want = "signalled  none\ngone       none\nleft       none";
    assert!(rest.starts_with(want), "{proof}");
}

#[test]
fn a_stop_of_an_ended_process_ends_its_survivors() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "setsid-background hold end then exit 3");
    daemon.fixture.anchor.wait_for(1);
    assert_eq!(daemon.finish(&["wait", &id]).code, Some(3));
    let [left] = daemon.fixture.anchor.wait_for(1)[..] else { panic!("one is left") };
    let proof = daemon.result(&["stop", &id]);
    let want = format!(
        "{} had already ended: exit 3\nsignalled  testchild (pid {left})\ngone       testchild (pid {left})\nleft       none",
        &id[28..]
    );
    assert!(proof.starts_with(&want), "{proof}");
}

#[test]
fn a_stop_after_a_server_crash_does_not_invent_an_exit_status() {
    let mut daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    let [left] = daemon.fixture.anchor.wait_for(1)[..] else { panic!("one is started") };
    daemon.kill();
    daemon.start_again();
    let proof = daemon.result(&["stop", &id]);
    daemon.fixture.anchor.wait_for_at_most(0);
    let want = format!(
        "{}: lost: the server ended before the process did; it may still run as pid {left}\n\
         signalled  testchild (pid {left})\ngone       testchild (pid {left})\nleft       none found\nsearched   ",
        &id[28..]
    );
    assert!(proof.starts_with(&want), "{proof}");
}

#[test]
fn a_stop_can_use_another_signal_and_grace() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "ignore 15 then hold");
    daemon.fixture.anchor.wait_for(1);
    daemon.result(&["stop", &id, "--signal", "TERM", "--grace", "0s"]);
    daemon.check(&["wait", &id], 137, "", "");
}

/// The daemon shares no environment, session, stream or parent with the command.
#[test]
fn a_stop_ends_daemons_and_a_shutdown_ends_the_rest() {
    let daemon = Daemon::start();
    let (name, anchor) = daemon.fixture.anchor.env();
    let child = lastbyte_testkit::testchild();
    let detach = format!(
        "(setsid env -i {name}={} {} hold >/dev/null 2>&1 </dev/null &)",
        anchor.to_str().unwrap(),
        child.display()
    );
    daemon.result(&["start", "exec sleep 60"]);
    let id = daemon.result(&["start", &format!("{detach}; exec sleep 60")]);
    daemon.fixture.anchor.wait_for(1);
    daemon.result(&["stop", id.trim()]);
    daemon.fixture.anchor.wait_for_at_most(0);

    // Nothing shows to which command this one belongs.
    let unmarked = detach.replace("(setsid", "(prlimit --locks=5:5 setsid");
    let id = daemon.result(&["start", &format!("{unmarked}; exec sleep 60")]);
    daemon.fixture.anchor.wait_for(1);
    daemon.finish(&["stop", id.trim()]);
    assert_eq!(daemon.finish(&["shutdown"]).code, Some(0));
    daemon.fixture.anchor.wait_for_at_most(0);
}
