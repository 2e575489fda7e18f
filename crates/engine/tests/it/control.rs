//! Signals: which processes get them, and what the answer says, in each phase.

use lastbyte_engine::{Delivery, Phase, Reach, ReachChoice, Signal, Status, Verb};
use lastbyte_testkit::{Reused, eventually, inside, is_alive};
use rustix::process::{Pid, WaitOptions, waitpid};

use crate::fixture::{Fixture, HOUR, drain, finish, nobody_left, patiently};

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_a_running_process_reaches_its_group() {
    let fixture = Fixture::new();
    let process = fixture.start("background hold end then hold").await;
    fixture.anchor.wait_for(2);
    assert_eq!(process.signal(Signal::TERM).await, Ok(Delivery::Group));
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.status, Status::Signalled { signal: Signal::TERM, core_dumped: false });
    fixture.anchor.wait_for_at_most(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_during_the_drain_reaches_the_rest_of_the_group() {
    let fixture = Fixture::new();
    let mut launch = fixture.launch("leave-silent-holder");
    launch.drain = drain(HOUR, HOUR);
    let process = fixture.start_launch(launch).await;
    fixture.anchor.wait_for(1);
    let draining = process.wait_for(|snapshot| snapshot.phase == Phase::Draining);
    patiently("draining", draining).await;
    assert_eq!(process.signal(Signal::TERM).await, Ok(Delivery::Survivors(1)));
    finish(&process).await;
}

/// While the zombie is kept, `kill` always returns 0; the answer must not rely on it.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_during_the_drain_does_not_reach_holders_outside_the_group() {
    let fixture = Fixture::new();
    // The holder has its own session and group.
    let mut launch = fixture.launch("setsid-background hold end then exit 0");
    launch.drain = drain(HOUR, HOUR);
    let process = fixture.start_launch(launch).await;
    fixture.anchor.wait_for(1);
    let draining = process.wait_for(|snapshot| snapshot.phase == Phase::Draining);
    patiently("draining", draining).await;
    assert_eq!(process.signal(Signal::TERM).await, Ok(Delivery::Nobody));
    fixture.anchor.tell("exit 0");
    finish(&process).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_after_the_ending_reaches_survivors_of_the_group() {
    let fixture = Fixture::new();
    let process = fixture.start("leave-silent-holder").await;
    finish(&process).await;
    let holder = fixture.anchor.wait_for(1)[0];
    assert_eq!(process.signal(Signal::TERM).await, Ok(Delivery::Survivors(1)));
    eventually("the holder is gone", || !is_alive(holder));
    let closed = patiently("the log closes", process.wait_for(|_| false)).await;
    assert!(!closed.log_open);
    assert_eq!(process.signal(Signal::TERM).await, Ok(Delivery::Nobody));
}

/// The kernel gives the leader's pid to another process before the old process is signalled.
#[tokio::test(flavor = "multi_thread")]
async fn a_reused_pid_is_never_signalled() {
    let flags = ["--pid", "--fork", "--mount-proc", "--kill-child"];
    if !inside("control::a_reused_pid_is_never_signalled", &flags) {
        return;
    }
    for reach in
        [ReachChoice::Best, ReachChoice::Only(Reach::Scan), ReachChoice::Only(Reach::Group)]
    {
        let fixture = Fixture::with(|settings| settings.reach = reach);
        // The kernel reports the start time of a process to a hundredth of a second.
        let process = fixture.start("background hold end then sleep-ms 30").await;
        let holder = fixture.anchor.wait_for(1)[0];
        finish(&process).await;
        fixture.anchor.tell("exit 0");
        patiently("the log closes", process.wait_for(|_| false)).await;
        // We are the first process of the namespace, and so its orphans become our children.
        let holder = Pid::from_raw(holder.cast_signed()).unwrap();
        waitpid(Some(holder), WaitOptions::empty()).unwrap();
        let mut innocent = [process.pid(), holder.as_raw_pid()].map(Reused::pid);
        assert_eq!(process.signal(Signal::KILL).await, Ok(Delivery::Nobody), "{reach:?}");
        let proof = patiently("stop", process.stop(Verb::Stop)).await;
        let reach = fixture.engine.reach();
        assert_eq!(proof, nobody_left(vec![], reach));
        assert!(innocent.iter_mut().all(Reused::is_alive), "{reach:?}");
    }
}
