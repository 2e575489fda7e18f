//! Stopping: the signal, the grace, KILL, and the proof.

use std::time::Duration;

use lastbyte_engine::{Cause, Launch, Signal, Status, StopPolicy, StopProof, Verb};
use lastbyte_testkit::is_alive;

use crate::fixture::{Fixture, HOUR, finish, patiently};

fn launch(fixture: &Fixture, actions: &str, grace: Duration) -> Launch {
    let stop = StopPolicy { signal: Signal::TERM, grace };
    Launch { stop, ..fixture.launch(actions) }
}

fn sorted(pids: impl IntoIterator<Item = u32>) -> Vec<i32> {
    let mut pids: Vec<i32> = pids.into_iter().map(|pid| pid.cast_signed()).collect();
    pids.sort_unstable();
    pids
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stop_signal_is_enough_for_a_command_that_heeds_it() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(launch(&fixture, "hold", HOUR)).await;
    let pids = sorted(fixture.anchor.wait_for(1));
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    let reach = fixture.engine.reach();
    assert_eq!(proof, StopProof { signalled: pids.clone(), gone: pids, left: vec![], reach });
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.status, Status::Signalled { signal: Signal::TERM, core_dumped: false });
    assert_eq!(ending.cause, Cause::Stopped { verb: Verb::Stop, escalated: false });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_has_its_grace() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(launch(&fixture, "trap 15 exit 9 then hold", HOUR)).await;
    fixture.anchor.wait_for(1);
    patiently("stop", process.stop(Verb::Stop)).await;
    assert_eq!(finish(&process).await.0.status, Status::Exited(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ignores_the_signal_is_killed_after_the_grace() {
    let fixture = Fixture::new();
    let grace = Duration::from_millis(100);
    let process = fixture.start_launch(launch(&fixture, "ignore 15 then hold", grace)).await;
    fixture.anchor.wait_for(1);
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    assert_eq!(proof.left, []);
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.status, Status::Signalled { signal: Signal::KILL, core_dumped: false });
    assert_eq!(ending.cause, Cause::Stopped { verb: Verb::Stop, escalated: true });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_process_sees_the_signal_too() {
    let fixture = Fixture::new();
    let process =
        fixture.start_launch(launch(&fixture, "join then stop-self then hold", HOUR)).await;
    fixture.anchor.wait_for(1);
    patiently("stop", process.stop(Verb::Stop)).await;
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.status, Status::Signalled { signal: Signal::TERM, core_dumped: false });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_stop_does_not_wait_out_the_grace() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(launch(&fixture, "ignore 15 then hold", HOUR)).await;
    fixture.anchor.wait_for(1);
    let first = tokio::spawn({
        let process = process.clone();
        async move { process.stop(Verb::Stop).await }
    });
    // The first is known to have begun once a second one is in a hurry.
    while !matches!(process.snapshot().phase, lastbyte_engine::Phase::Ended(_)) {
        patiently("second stop", process.stop(Verb::Stop)).await;
    }
    assert_eq!(patiently("the first, too", first).await.unwrap().left, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn survivors_of_an_ended_process_can_be_stopped() {
    let fixture = Fixture::new();
    let process = fixture.start("leave-silent-holder").await;
    finish(&process).await;
    let survivors = sorted(fixture.anchor.wait_for(1));
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    let (signalled, gone, reach) = (survivors.clone(), survivors, fixture.engine.reach());
    assert_eq!(proof, StopProof { signalled, gone, left: vec![], reach });
    fixture.anchor.wait_for_at_most(0);
    let ending = process.ended().await;
    assert_eq!(ending.cause, Cause::Own, "the leader had ended by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_mixed_tree_is_left() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(launch(&fixture, "tree 30 mixed then hold", HOUR)).await;
    let pids = fixture.anchor.wait_for(31);
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    assert_eq!(proof.left, []);
    for pid in sorted(pids.clone()) {
        assert!(proof.gone.contains(&pid), "{pid} is named");
    }
    assert!(pids.iter().all(|pid| !is_alive(*pid)));
}
