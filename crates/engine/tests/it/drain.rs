//! From the leader's exit to the ending: no byte is lost, and no wait is needless.

use std::time::Duration;

use lastbyte_engine::{Closing, End, Holders, Phase, Status};
use lastbyte_testkit::is_alive;

use crate::fixture::{Fixture, HOUR, drain, finish, patiently, read};

fn holder_pids(closing: &Closing) -> Vec<u32> {
    match closing {
        Closing::Held(Holders::Known(holders)) => {
            holders.iter().map(|holder| holder.pid.unsigned_abs()).collect()
        }
        other => panic!("expected known holders, got {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tail_of_a_background_child_is_kept_and_the_child_lives_on() {
    let fixture = Fixture::new();
    let mut launch = fixture.launch("leave-tail");
    // The tail is written in two parts 30 ms apart, or more on a busy machine. The test fails if
    // the drain waits for its limit.
    launch.drain = drain(Duration::from_secs(1), HOUR);
    let process = fixture.start_launch(launch).await;
    let (ending, bytes) = finish(&process).await;
    assert_eq!(String::from_utf8_lossy(&bytes), "tail");
    assert_eq!(ending.status, Status::Exited(0));
    let holder = fixture.anchor.wait_for(1);
    assert_eq!(holder_pids(&ending.closing), holder);
    assert!(is_alive(holder[0]), "ended while the holder still holds");
    assert!(process.snapshot().log_open);

    fixture.anchor.tell("print later");
    let snapshot = patiently("late output", process.until_past(8)).await;
    assert_eq!(snapshot.ending().map(|ending| ending.final_len), Some(4));
    assert_eq!(snapshot.output_len(), 4, "late output is no part of the output");
    assert_eq!(read(&process, &snapshot, 4..9), b"later");

    fixture.anchor.tell("exit 0");
    let closed = patiently("the log closes", process.wait_for(|_| false)).await;
    assert!(!closed.log_open);
}

#[test]
fn a_drain_is_short_by_default() {
    let rule = lastbyte_engine::Launch::shell("x").drain;
    assert_eq!((rule.quiet_window.as_millis(), rule.limit.as_millis()), (50, 2000));
    assert_eq!(rule.holders.as_millis(), 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_holder_ends_at_the_quiet_window() {
    let fixture = Fixture::new();
    let mut launch = fixture.launch("leave-silent-holder");
    // The test fails if the drain waits for its limit.
    launch.drain = drain(Duration::from_millis(50), HOUR);
    let process = fixture.start_launch(launch).await;
    let (ending, _) = finish(&process).await;
    assert_eq!(holder_pids(&ending.closing), fixture.anchor.wait_for(1));
}

/// The whole drain takes longer than one window, but no pause in it does.
#[tokio::test(flavor = "multi_thread")]
async fn every_byte_starts_a_new_quiet_window() {
    let fixture = Fixture::new();
    let mut launch = fixture.launch("leave-silent-holder");
    let window = Duration::from_secs(2);
    launch.drain = drain(window, HOUR);
    let process = fixture.start_launch(launch).await;
    fixture.anchor.wait_for(1);
    for count in 1..=5 {
        fixture.anchor.tell("print x");
        patiently("the byte", process.until_past(count - 1)).await;
        // No byte arrives in between.
        _ = tokio::time::timeout(window / 4, std::future::pending::<()>()).await;
    }
    let (ending, bytes) = finish(&process).await;
    assert_eq!((ending.final_len, bytes.as_slice()), (5, &b"xxxxx"[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_limit_bytes_that_are_ready_are_still_kept() {
    let fixture = Fixture::new();
    let mut launch = fixture.launch("leave-chatty-holder 1");
    // It is never quiet for an hour, so only the limit can end the drain.
    launch.drain = drain(HOUR, Duration::from_millis(300));
    let process = fixture.start_launch(launch).await;
    let (ending, bytes) = finish(&process).await;
    assert!(matches!(ending.closing, Closing::Held(_)));
    let End::Seen { drained, .. } = ending.times.end else { panic!("{ending:?}") };
    assert!(drained >= Duration::from_millis(300));
    let expected = lastbyte_testkit::pattern_bytes(0..ending.final_len);
    assert!(bytes == expected, "{} bytes, with none missing among them", bytes.len());
    assert!(!bytes.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flooding_holder_cannot_keep_a_command_from_ending() {
    let fixture = Fixture::new();
    let mut launch = fixture.launch("background flood end then exit 5");
    launch.drain.limit = Duration::from_millis(200);
    let process = fixture.start_launch(launch).await;
    let ending = patiently("it ends under a flood", process.ended()).await;
    assert_eq!(ending.status, Status::Exited(5));
    patiently("the flood stops", process.stop(lastbyte_engine::Verb::Stop)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_of_file_ends_the_drain_at_once() {
    let fixture = Fixture::new();
    let mut launch = fixture.launch("print x");
    launch.drain = drain(HOUR, HOUR);
    let process = fixture.start_launch(launch).await;
    assert_eq!(finish(&process).await.0.closing, Closing::Eof);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_redirected_its_output_holds_nothing() {
    let fixture = Fixture::new();
    let actions = "background close-stdout then close-stderr then hold end";
    let mut launch = fixture.launch(actions);
    launch.drain = drain(HOUR, HOUR);
    let process = fixture.start_launch(launch).await;
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.closing, Closing::Eof);
    let survivors = patiently("survivors", process.survivors()).await;
    let pids: Vec<u32> = survivors.iter().map(|survivor| survivor.pid.unsigned_abs()).collect();
    assert_eq!(pids, fixture.anchor.wait_for(1), "it is told as a survivor all the same");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_phase_is_draining_from_the_leaders_exit() {
    let fixture = Fixture::new();
    let mut launch = fixture.launch("leave-silent-holder");
    launch.drain = drain(HOUR, HOUR);
    let process = fixture.start_launch(launch).await;
    let draining = process.wait_for(|snapshot| snapshot.phase != Phase::Running);
    let snapshot = patiently("draining", draining).await;
    assert_eq!(snapshot.phase, Phase::Draining);
    fixture.anchor.wait_for(1);
    fixture.anchor.tell("exit 0");
    assert_eq!(finish(&process).await.0.closing, Closing::Eof);
}

#[tokio::test]
async fn no_reader_is_left_before_the_ending() {
    let fixture = Fixture::new();
    let process = fixture.start("hold").await;
    fixture.anchor.wait_for(1);
    let refused = process.leave_reader().await.unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ResourceBusy);
    fixture.anchor.tell("exit 0");
    process.ended().await;
    process.wait_for(|snapshot| !snapshot.log_open).await;
    process.leave_reader().await.expect("there is nothing to read");
}
