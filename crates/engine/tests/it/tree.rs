//! Whole trees, with each reach: nothing is left, and the answer says so.

use std::time::Duration;

use lastbyte_engine::{Cause, Launch, Process, Reach, ReachChoice, Signal, StopPolicy, Verb};
use lastbyte_sys::procfs;
use lastbyte_testkit::{eventually, is_alive};

use crate::fixture::{Fixture, HOUR, finish, patiently, sure_reaches};

const TERM: StopPolicy = StopPolicy { signal: Signal::TERM, grace: HOUR };

fn fixture(reach: Reach) -> Fixture {
    Fixture::with(|settings| settings.reach = ReachChoice::Only(reach))
}

fn launch(fixture: &Fixture, actions: &str, stop: StopPolicy) -> Launch {
    Launch { stop, ..fixture.launch(actions) }
}

fn sorted(pids: impl IntoIterator<Item = u32>) -> Vec<i32> {
    let mut pids: Vec<i32> = pids.into_iter().map(|pid| pid.cast_signed()).collect();
    pids.sort_unstable();
    pids
}

/// The live processes with this process's cookie, as the test sees them.
fn bearers(process: &Process) -> Vec<i32> {
    let id = process.id().to_string().into_bytes();
    let bears = |pid| procfs::initial_env(pid, "LASTBYTE_ID").unwrap() == Some(id.clone());
    let all = procfs::all().unwrap().into_iter().filter(procfs::Stat::alive);
    all.map(|stat| stat.pid).filter(|pid| bears(*pid)).collect()
}

/// Stops it: nothing is left, and all `pids` are named.
async fn stop_all(process: &Process, pids: &[u32], reach: Reach) {
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    assert_eq!((&proof.left, proof.reach), (&vec![], reach));
    assert_eq!(proof.signalled, proof.gone);
    for pid in sorted(pids.iter().copied()) {
        assert!(proof.gone.contains(&pid), "{reach:?}: {pid} is named in {proof:?}");
    }
    assert!(pids.iter().all(|pid| !is_alive(*pid)), "{reach:?}");
    assert_eq!(bearers(process), [], "{reach:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_of_three_hundred_processes_names_all_and_leaves_none() {
    for reach in sure_reaches() {
        for policy in [TERM, StopPolicy::KILL] {
            let fixture = fixture(reach);
            let process =
                fixture.start_launch(launch(&fixture, "tree 300 mixed then hold", policy)).await;
            let pids = fixture.anchor.wait_for(301);
            stop_all(&process, &pids, reach).await;
            let escalated = false;
            let ending = finish(&process).await.0;
            assert_eq!(ending.cause, Cause::Stopped { verb: Verb::Stop, escalated });
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn by_group_the_processes_that_left_it_are_reported_as_left() {
    let fixture = fixture(Reach::Group);
    let process =
        fixture.start_launch(launch(&fixture, "tree 300 mixed then hold", StopPolicy::KILL)).await;
    let pids = fixture.anchor.wait_for(301);
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    let (alive, dead): (Vec<u32>, Vec<u32>) = pids.into_iter().partition(|pid| is_alive(*pid));
    assert_eq!((alive.len(), dead.len()), (200, 101));
    assert_eq!((proof.left, proof.reach), (sorted(alive.clone()), Reach::Group));
    assert_eq!((&proof.signalled, &proof.gone), (&sorted(dead.clone()), &sorted(dead)));
    let survivors = process.survivors().await.into_iter().map(|s| s.pid.unsigned_abs());
    assert_eq!(sorted(survivors), sorted(alive));
    let Fixture { anchor, .. } = fixture;
    drop(anchor);
    eventually("they end with their anchor", || bearers(&process).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_is_stopped_while_it_grows() {
    for reach in sure_reaches() {
        let fixture = fixture(reach);
        let process = fixture
            .start_launch(launch(&fixture, "fork-bomb 300 then hold", StopPolicy::KILL))
            .await;
        fixture.anchor.wait_for(20);
        let proof = patiently("stop", process.stop(Verb::Stop)).await;
        assert_eq!(proof.left, [], "{reach:?}");
        assert_eq!(bearers(&process), [], "{reach:?}");
        fixture.anchor.wait_for_at_most(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_ignores_the_signal_is_killed_after_the_grace() {
    for reach in sure_reaches() {
        let fixture = fixture(reach);
        let policy = StopPolicy { signal: Signal::TERM, grace: Duration::from_millis(100) };
        let actions = "ignore 15 then stubborn-tree 30 then hold";
        let process = fixture.start_launch(launch(&fixture, actions, policy)).await;
        let pids = fixture.anchor.wait_for(31);
        stop_all(&process, &pids, reach).await;
        let ending = finish(&process).await.0;
        assert_eq!(ending.cause, Cause::Stopped { verb: Verb::Stop, escalated: true });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_tree_gets_the_signal_and_can_be_killed() {
    let stopped = "join then stop-self then hold";
    let actions = format!(
        "background {stopped} end then setsid-background {stopped} end \
         then double-fork-background {stopped} end then {stopped}"
    );
    for reach in sure_reaches() {
        for policy in [TERM, StopPolicy::KILL] {
            let fixture = fixture(reach);
            let process = fixture.start_launch(launch(&fixture, &actions, policy)).await;
            let pids = fixture.anchor.wait_for(4);
            let state = |pid: &u32| procfs::read_stat(pid.cast_signed()).unwrap().state;
            eventually("all are stopped", || pids.iter().all(|pid| state(pid) == b'T'));
            stop_all(&process, &pids, reach).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_outlives_its_leader_is_listed_and_stopped() {
    for reach in sure_reaches() {
        let fixture = fixture(reach);
        let process =
            fixture.start_launch(launch(&fixture, "tree 30 mixed then exit 0", TERM)).await;
        assert_eq!(finish(&process).await.0.cause, Cause::Own);
        let pids = fixture.anchor.wait_for(30);
        let survivors = process.survivors().await.into_iter().map(|s| s.pid.unsigned_abs());
        assert_eq!(sorted(survivors), sorted(pids.clone()), "{reach:?}");
        stop_all(&process, &pids, reach).await;
        assert_eq!(process.survivors().await, []);
        patiently("the log closes", process.wait_for(|_| false)).await;
        let again = patiently("stop", process.stop(Verb::Stop)).await;
        assert_eq!((again.signalled, again.left), (vec![], vec![]));
    }
}

/// A signal goes to the whole group, but not to processes that left it.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_after_the_ending_reaches_only_the_group() {
    for reach in sure_reaches().into_iter().chain([Reach::Group]) {
        let fixture = fixture(reach);
        let process = fixture.start("tree 9 mixed then exit 0").await;
        finish(&process).await;
        fixture.anchor.wait_for(9);
        let delivery = patiently("signal", process.signal(Signal::KILL)).await;
        assert_eq!(delivery, Ok(lastbyte_engine::Delivery::Survivors(3)), "{reach:?}");
        fixture.anchor.wait_for_at_most(6);
    }
}
