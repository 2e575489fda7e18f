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
    daemon.check(&["wait", &id], 143, "", "");
}

#[test]
fn a_stop_of_what_has_ended_has_nobody_to_signal() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "exit 0");
    daemon.result(&["wait", &id]);
    let proof = daemon.result(&["stop", &id]);
    let ended = format!("{} had already ended: exit 0", &id[28..]);
    let (first, rest) = proof.split_once('\n').unwrap();
    assert_eq!(first, ended);
    let want = "signalled  nobody\ngone       nobody\nleft       nobody\nproved by  ";
    assert!(rest.starts_with(want), "{proof}");
}

#[test]
fn a_stop_of_what_an_ended_process_has_left_says_both() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "setsid-background hold end then exit 3");
    daemon.fixture.anchor.wait_for(1);
    assert_eq!(daemon.finish(&["wait", &id]).code, Some(3));
    let [left] = daemon.fixture.anchor.wait_for(1)[..] else { panic!("one is left") };
    let proof = daemon.result(&["stop", &id]);
    let want = format!(
        "{} had already ended: exit 3\nsignalled  {left}\ngone       {left}\nleft       nobody\n",
        &id[28..]
    );
    assert!(proof.starts_with(&want), "{proof}");
}

#[test]
fn a_stop_of_what_a_killed_server_has_left_does_not_call_it_ended() {
    let mut daemon = Daemon::start();
    let id = daemon.testchild(&[], "hold");
    let [left] = daemon.fixture.anchor.wait_for(1)[..] else { panic!("one is started") };
    daemon.kill();
    daemon.start_again();
    let proof = daemon.result(&["stop", &id]);
    daemon.fixture.anchor.wait_for_at_most(0);
    let want = format!(
        "{}: how it ended, if it had, is not known: the server ended before the process did\n\
         signalled  {left}\ngone       {left}\nleft       nobody\n",
        &id[28..]
    );
    assert!(proof.starts_with(&want), "{proof}");
}

#[test]
fn a_stop_can_be_given_another_signal_and_grace() {
    let daemon = Daemon::start();
    let id = daemon.testchild(&[], "ignore 15 then hold");
    daemon.fixture.anchor.wait_for(1);
    daemon.result(&["stop", &id, "--signal", "TERM", "--grace", "0s"]);
    daemon.check(&["wait", &id], 137, "", "");
}
