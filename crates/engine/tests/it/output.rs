//! What a command writes can be read in order and completely.

use std::fs::File;
use std::path::PathBuf;

use lastbyte_engine::{Closing, End, Kept, Launch, Phase, ReachChoice, Status, Streams, Verb};
use lastbyte_output::log::Stream;
use lastbyte_testkit::{eventually, open_targets, pattern_bytes};
use rustix::pipe::fcntl_getpipe_size;

use crate::fixture::{Fixture, finish, finish_text, patiently, read, read_stream, sure_reaches};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_ends_with_its_code_and_its_output() {
    let fixture = Fixture::new();
    let process = fixture.start("print hello then exit 3").await;
    let (ending, bytes) = finish(&process).await;
    assert_eq!(ending.status, Status::Exited(3));
    assert_eq!(bytes, b"hello");
    assert_eq!((&ending.closing, &ending.kept), (&Closing::Eof, &Kept::Whole));
    assert!(!process.snapshot().log_open);
}

#[tokio::test(flavor = "multi_thread")]
async fn merged_streams_keep_their_order() {
    let fixture = Fixture::new();
    let process = fixture.start("print a then eprint b then print c then eprint d").await;
    assert_eq!(finish_text(&process).await, (Status::Exited(0), "abcd".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn split_streams_are_marked() {
    let fixture = Fixture::new();
    let mut launch = fixture.launch("alternate 5000 then print out then eprint err");
    launch.streams = Streams::Split;
    let process = fixture.start_launch(launch).await;
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.final_len, 10_006);
    let snapshot = process.snapshot();
    for (stream, tail) in [(Stream::Out, b"out"), (Stream::Err, b"err")] {
        let bytes = read_stream(&process, &snapshot, stream);
        assert_eq!(bytes.len(), 5003);
        assert_eq!(&bytes[5000..], tail);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_output_reads_back_byte_for_byte() {
    let fixture = Fixture::new();
    let process = fixture.start("write-bytes 5000000").await;
    let (ending, bytes) = finish(&process).await;
    assert_eq!(ending.final_len, 5_000_000);
    assert!(bytes == pattern_bytes(0..5_000_000));
}

/// A pump that keeps up with a flood never finds its pipe full, and then every write wakes it.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_gets_a_larger_pipe_and_a_trickle_does_not() {
    let fixture = Fixture::new();
    let trickle = fixture.start("print x then hold").await;
    patiently("its output", trickle.until_past(0)).await;
    let flood = fixture.start("flood").await;
    eventually("a larger pipe", || pipe_size(flood.pid()) == 1 << 20);
    assert_eq!(pipe_size(trickle.pid()), 64 << 10);
    flood.stop(Verb::Stop).await;
}

/// Of the pipe that this process has as its standard output.
fn pipe_size(pid: i32) -> usize {
    let pipe = File::open(format!("/proc/{pid}/fd/1")).unwrap();
    fcntl_getpipe_size(pipe).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_can_follow_while_it_runs() {
    let fixture = Fixture::new();
    let process = fixture.start("print first then hold").await;
    let snapshot = patiently("the first bytes", process.until_past(4)).await;
    assert_eq!(snapshot.phase, Phase::Running);
    assert_eq!(read(&process, &snapshot, 0..5), b"first");
    fixture.anchor.wait_for(1);
    fixture.anchor.tell("print second");
    let snapshot = patiently("more bytes", process.until_past(10)).await;
    assert_eq!(read(&process, &snapshot, 5..11), b"second");
}

/// A log stays open for a while after a read, but a removed file must not.
#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_log_takes_no_disk_space() {
    let fixture = Fixture::new();
    let process = fixture.start("write-bytes 5000").await;
    finish(&process).await;
    patiently("closed", process.wait_for(|_| false)).await;
    let logs = fixture.state.path().join("logs");
    let open = || open_targets().iter().filter(|target| target.starts_with(&logs)).count();
    patiently("its owner closes it", async {
        while open() > 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(open(), 1);
    fixture.engine.forget(process.id()).unwrap();
    assert_eq!(open(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_with_short_output_leaves_no_file() {
    let fixture = Fixture::new();
    for (actions, files) in [("exit 0", 0), ("print x", 0), ("write-bytes 5000", 1)] {
        let process = fixture.start(actions).await;
        finish(&process).await;
        assert_eq!(process.log_file().is_some(), files == 1);
        eventually("its file is gone", || fixture.files() == files);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_output_is_kept_unchanged() {
    let fixture = Fixture::new();
    let process = fixture.start(r"print \xff\0\xfe\r\n").await;
    assert_eq!(finish(&process).await.1, b"\xff\0\xfe\r\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_closes_its_output_early_ends_when_it_exits() {
    let fixture = Fixture::new();
    let process = fixture.start("print bye then close-stdout then close-stderr then hold").await;
    fixture.anchor.wait_for(1);
    assert!(matches!(process.snapshot().phase, Phase::Running), "the end of output is no exit");
    fixture.anchor.tell("exit 4");
    assert_eq!(finish_text(&process).await, (Status::Exited(4), "bye".into()));
}

/// A command that has closed its output may run for a year.
#[tokio::test(flavor = "multi_thread")]
async fn closed_pipes_are_released_while_the_command_runs() {
    let fixture = Fixture::new();
    let is_pipe = |target: &&PathBuf| target.to_string_lossy().starts_with("pipe:");
    let pipes = || open_targets().iter().filter(is_pipe).count();
    let before = pipes();
    let mut launch = fixture.launch("close-stdout then close-stderr then hold");
    launch.streams = Streams::Split;
    let process = fixture.start_launch(launch).await;
    fixture.anchor.wait_for(1);
    eventually("they are closed", || pipes() == before);
    assert_eq!(process.snapshot().phase, Phase::Running);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_that_a_survivor_closes_is_released_while_it_holds_the_other() {
    let fixture = Fixture::new();
    let is_pipe = |target: &&PathBuf| target.to_string_lossy().starts_with("pipe:");
    let pipes = || open_targets().iter().filter(is_pipe).count();
    let before = pipes();
    // It closes one after the ending.
    let survivor = "background sleep-ms 300 then close-stdout then hold end";
    let mut launch = fixture.launch(&format!("{survivor} then exit 0"));
    launch.streams = Streams::Split;
    let process = fixture.start_launch(launch).await;
    process.ended().await;
    fixture.anchor.wait_for(1);
    eventually("one is closed", || pipes() == before + 1);
    assert!(process.snapshot().log_open);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ending_says_when_and_what_it_cost() {
    let fixture = Fixture::new();
    let process = fixture.start("write-bytes 1000000").await;
    let (ending, _) = finish(&process).await;
    let End::Seen { exited, ended, ran, .. } = ending.times.end else { panic!("{ending:?}") };
    assert!(ending.times.started <= exited && exited <= ended);
    let usage = ending.usage.expect("reaped by us");
    assert!(!(usage.user + usage.system).is_zero());
    assert!(ran >= usage.user, "one thread cannot use more time than there was");
}

/// A child starts as a copy of its spawner, and the kernel would count the spawner's peak.
#[tokio::test(flavor = "multi_thread")]
async fn our_own_peak_memory_is_never_reported_as_the_commands() {
    let ballast = vec![1u8; 300 << 20];
    assert!(ballast.iter().step_by(4096).all(|byte| *byte == 1), "in memory for real");
    for reach in sure_reaches() {
        let fixture = Fixture::with(|settings| settings.reach = ReachChoice::Only(reach));
        let process = fixture.start_launch(Launch::argv(["/bin/true"])).await;
        let usage = finish(&process).await.0.usage.expect("reaped by us");
        assert!(usage.peak_memory.is_none_or(|peak| peak < 50 << 20), "{usage:?} by {reach:?}");
    }
    drop(ballast);
}
