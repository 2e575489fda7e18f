//! Stopping: the signal, the grace, KILL, and the proof.

use std::time::Duration;

use lastbyte_engine::{Cause, Launch, Reach, ReachChoice, Signal, Status, StopPolicy, Verb};
use lastbyte_testkit::is_alive;

use crate::fixture::{
    Fixture, HOUR, finish, fixture_with_cgroups, nobody_left, patiently, sure_reaches,
};

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
async fn a_command_that_obeys_the_stop_signal_is_not_killed() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(launch(&fixture, "hold", HOUR)).await;
    let pids = sorted(fixture.anchor.wait_for(1));
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    let reach = fixture.engine.reach();
    assert_eq!(proof, nobody_left(pids, reach));
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.status, Status::Signalled { signal: Signal::TERM, core_dumped: false });
    assert_eq!(ending.cause, Cause::Stopped { verb: Verb::Stop, escalated: false });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_can_run_during_the_grace() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(launch(&fixture, "trap 15 exit 9 then hold", HOUR)).await;
    fixture.anchor.wait_for(1);
    patiently("stop", process.stop(Verb::Stop)).await;
    assert_eq!(finish(&process).await.0.status, Status::Exited(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ignores_the_signal_is_killed_after_the_grace() {
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
async fn a_suspended_process_gets_the_signal() {
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
    // When a second stop is in a hurry, the first one has begun.
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
    assert_eq!(proof, nobody_left(survivors, fixture.engine.reach()));
    fixture.anchor.wait_for_at_most(0);
    let ending = process.ended().await;
    assert_eq!(ending.cause, Cause::Own, "the leader had ended by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_leaves_nothing_of_a_mixed_tree() {
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

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_names_every_process_that_it_signals() {
    let term = StopPolicy { signal: Signal::TERM, grace: HOUR };
    for reach in sure_reaches() {
        let fixture = Fixture::with(|settings| settings.reach = ReachChoice::Only(reach));
        for policy in [term, StopPolicy::KILL] {
            let process = fixture.start("tree 3 mixed then hold").await;
            fixture.anchor.wait_for(4);
            let proof = patiently("stop", process.stop_by(policy, Verb::Stop)).await;
            let named: Vec<i32> = proof.names.keys().copied().collect();
            assert_eq!(named, proof.signalled, "{reach:?} {policy:?}");
            assert!(proof.names.values().all(|name| name == "testchild"), "{proof:?}");
            fixture.anchor.wait_for_at_most(0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_continues_when_its_caller_goes_away() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(launch(&fixture, "hold", HOUR)).await;
    fixture.anchor.wait_for(1);
    {
        let mut stop = std::pin::pin!(process.stop(Verb::Stop));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        // Begun, and dropped before it is done, or very soon after.
        _ = stop.as_mut().poll(&mut context);
    }
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.cause, Cause::Stopped { verb: Verb::Stop, escalated: false });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_grace_lasts_for_ever() {
    let fixture = Fixture::new();
    let actions = "trap 15 exit 9 then hold";
    let process = fixture.start_launch(launch(&fixture, actions, Duration::MAX)).await;
    fixture.anchor.wait_for(1);
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    assert_eq!(proof.left, []);
    assert_eq!(finish(&process).await.0.status, Status::Exited(9));
}

/// On one thread: the leader has exited, but the owner handles the stop first.
#[tokio::test]
async fn a_stop_after_the_exit_is_not_its_cause() {
    let fixture = Fixture::new();
    for _ in 0..10 {
        let process = fixture.start("exit 0").await;
        let pid = process.pid().unsigned_abs();
        lastbyte_testkit::eventually("it has exited", || !is_alive(pid));
        patiently("stop", process.stop(Verb::Stop)).await;
        let ending = process.ended().await;
        assert_eq!((ending.status, ending.cause), (Status::Exited(0), Cause::Own));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_stop_that_has_to_kill_is_an_escalation() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(launch(&fixture, "ignore 15 then hold", HOUR)).await;
    fixture.anchor.wait_for(1);
    let first = tokio::spawn({
        let process = process.clone();
        async move { process.stop(Verb::Stop).await }
    });
    while process.snapshot().ending().is_none() {
        patiently("second stop", process.stop(Verb::Stop)).await;
    }
    first.await.unwrap();
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.cause, Cause::Stopped { verb: Verb::Stop, escalated: true });
}

/// It dropped the cookie that every process of a tree inherits, but it holds our pipe.
#[tokio::test(flavor = "multi_thread")]
async fn a_survivor_with_an_empty_environment_is_found_by_a_scan() {
    let fixture = Fixture::with(|settings| settings.reach = ReachChoice::Only(Reach::Scan));
    let process = fixture.start_launch(Launch::shell("env -i sleep 600 & exit 0")).await;
    let (ending, _) = finish(&process).await;
    assert!(matches!(ending.closing, lastbyte_engine::Closing::Held(_)), "{ending:?}");
    let survivors = patiently("survivors", process.survivors()).await;
    assert_eq!(survivors.len(), 1, "{survivors:?}");
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    assert_eq!((proof.gone.len(), proof.left.len()), (1, 0), "{proof:?}");
    assert!(!is_alive(survivors[0].pid.unsigned_abs()));
}

/// Root can leave its cgroup, and so does a login, but it still belongs to the tree.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_left_the_cgroup_is_stopped() {
    let Some(fixture) = fixture_with_cgroups() else { return };
    let outside = lastbyte_sys::cgroup::own_folder().unwrap().join("cgroup.procs");
    let script = format!("echo $$ >{}; setsid sleep 600 & echo up; wait", outside.display());
    let process = fixture.start_launch(Launch::shell(script)).await;
    patiently("it is out", process.until_past(2)).await;
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    assert_eq!((proof.gone.len(), proof.left.len()), (2, 0), "{proof:?}");
    finish(&process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_waits_for_a_timeout_that_is_still_stopping_the_tree() {
    let fixture = Fixture::new();
    let actions = "background ignore 15 then hold end then hold";
    let mut launch = launch(&fixture, actions, Duration::from_millis(300));
    launch.timeouts.wall = Some(Duration::from_secs(1));
    let process = fixture.start_launch(launch).await;
    fixture.anchor.wait_for(2);
    finish(&process).await;
    patiently("close", fixture.engine.close(lastbyte_engine::Survivors::Leave)).await;
    fixture.anchor.wait_for_at_most(0);
}
