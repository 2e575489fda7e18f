//! Timeouts fire, and only when they should.

use std::time::Duration;

use lastbyte_engine::{Cause, Launch, OnTimeout, Signal, Status, StopPolicy, Timeout, Timeouts};

use crate::fixture::{Fixture, HOUR, finish, finish_text};

const SHORT: Duration = Duration::from_millis(200);

fn launch(fixture: &Fixture, actions: &str, timeouts: Timeouts) -> Launch {
    Launch { timeouts, ..fixture.launch(actions) }
}

fn wall(wall: Duration) -> Timeouts {
    Timeouts { wall: Some(wall), idle: None }
}

fn idle(idle: Duration) -> Timeouts {
    Timeouts { wall: None, idle: Some(idle) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_stops_a_command_and_keeps_its_output() {
    let fixture = Fixture::new();
    let process =
        fixture.start_launch(launch(&fixture, "print partial then hold", wall(SHORT))).await;
    let (ending, bytes) = finish(&process).await;
    assert_eq!(ending.cause, Cause::TimedOut { which: Timeout::Wall, escalated: false });
    assert_eq!(ending.status, Status::Signalled { signal: Signal::TERM, core_dumped: false });
    assert_eq!(bytes, b"partial");
    assert!(ending.times.ran() >= Some(SHORT));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_timeout_stops_a_silent_command() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(launch(&fixture, "print x then hold", idle(SHORT))).await;
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.cause, Cause::TimedOut { which: Timeout::Idle, escalated: false });
}

#[tokio::test(flavor = "multi_thread")]
async fn output_on_any_stream_restarts_the_idle_timeout() {
    let fixture = Fixture::new();
    // Five times the idle timeout in total, but never silent for that long.
    let step = "sleep-ms 100 then eprint x";
    let actions = [step; 10].join(" then ");
    let process =
        fixture.start_launch(launch(&fixture, &actions, idle(Duration::from_secs(5)))).await;
    let (ending, _) = finish(&process).await;
    assert_eq!((ending.status, ending.cause), (Status::Exited(0), Cause::Own));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_kills_a_command_that_ignores_the_signal() {
    let fixture = Fixture::new();
    let mut launch = launch(&fixture, "ignore 15 then print up then hold", wall(SHORT));
    launch.stop = StopPolicy { signal: Signal::TERM, grace: Duration::from_millis(50) };
    let process = fixture.start_launch(launch).await;
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.cause, Cause::TimedOut { which: Timeout::Wall, escalated: true });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_of_zero_stops_at_once_and_a_huge_one_never() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(launch(&fixture, "hold", wall(Duration::ZERO))).await;
    assert!(matches!(finish(&process).await.0.cause, Cause::TimedOut { .. }));
    for huge in [Duration::MAX, HOUR * 24 * 365 * 1000, Duration::from_secs(u64::MAX / 2)] {
        let timeouts = Timeouts { wall: Some(huge), idle: Some(huge) };
        let process = fixture.start_launch(launch(&fixture, "print x", timeouts)).await;
        assert_eq!(finish_text(&process).await, (Status::Exited(0), "x".into()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_reaches_children_that_left_the_group() {
    let fixture = Fixture::new();
    let actions = "setsid-background hold end then hold";
    let process = fixture.start_launch(launch(&fixture, actions, wall(SHORT))).await;
    finish(&process).await;
    fixture.anchor.wait_for_at_most(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_can_keep_running_after_its_timeout_and_this_is_reported() {
    let fixture = Fixture::new();
    for timeouts in [wall(SHORT), idle(SHORT)] {
        let on_timeout = OnTimeout::Background;
        let launch = Launch { on_timeout, ..launch(&fixture, "print x then hold", timeouts) };
        let process = fixture.start_launch(launch).await;
        let told = process.wait_for(|now| now.timed_out_at.is_some()).await;
        assert!(told.timed_out_at >= Some(process.spec().started + SHORT));
        fixture.anchor.wait_for(1);
        fixture.anchor.tell("print y");
        fixture.anchor.tell("exit 5");
        let (ending, bytes) = finish(&process).await;
        assert_eq!((ending.status, ending.cause), (Status::Exited(5), Cause::Own));
        assert_eq!(bytes, b"xy");
        assert_eq!(process.snapshot().timed_out_at, told.timed_out_at);
        fixture.anchor.wait_for_at_most(0);
    }
}
