//! Writing to a command, including one that does not read.

use std::time::Duration;

use lastbyte_engine::{
    Cause, Launch, LaunchError, Signal, StartError, Status, Stdin, StdinOpen, StopPolicy, Streams,
    Timeout, Timeouts, Verb, WindowSize, WriteError, Written,
};

use crate::fixture::{Fixture, finish, finish_text, patiently};

const QUEUE: usize = 16 << 20;

fn open(fixture: &Fixture, actions: &str) -> Launch {
    Launch { stdin: Stdin::Open, ..fixture.launch(actions) }
}

#[tokio::test(flavor = "multi_thread")]
async fn input_is_read_up_to_its_end() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(open(&fixture, "cat then print !")).await;
    assert_eq!(process.write(b"hello ".into(), None).await, Ok(Written { accepted: 6 }));
    assert_eq!(process.write_and_close(b"world".into(), None).await, Ok(Written { accepted: 11 }));
    assert_eq!(finish_text(&process).await, (Status::Exited(0), "hello world!".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn input_given_at_the_start_is_the_whole_input() {
    let fixture = Fixture::new();
    let given = |bytes: usize| Stdin::Given(vec![b'x'; bytes]);
    let launch = Launch { stdin: given(QUEUE), ..fixture.launch("cat") };
    let process = fixture.start_launch(launch).await;
    assert_eq!(finish(&process).await.0.final_len, QUEUE as u64);
    let launch = Launch { stdin: Stdin::Given(b"hi\n".into()), ..Launch::shell("stty -echo; cat") };
    let streams = Streams::Pty(WindowSize { rows: 5, cols: 5 });
    let process = fixture.start_launch(Launch { streams, ..launch }).await;
    let (status, text) = finish_text(&process).await;
    assert!(status == Status::Exited(0) && text.ends_with("hi\r\n"), "{status:?} {text:?}");
    let launch = Launch { stdin: given(QUEUE + 1), ..fixture.launch("cat") };
    let refused = fixture.engine.start(launch).await.unwrap_err();
    assert_eq!(refused, StartError::Launch(LaunchError::Input { bytes: QUEUE + 1 }));
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_stdin_is_at_its_end_at_once() {
    let fixture = Fixture::new();
    let process = fixture.start("await-eof then print done").await;
    assert_eq!(process.write(b"x".into(), None).await, Err(WriteError::NotOpen));
    assert_eq!(finish_text(&process).await.1, "done");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retried_offset_writes_once() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(open(&fixture, "cat then hold")).await;
    let write = |bytes: &str, at| process.write(bytes.into(), Some(at));
    assert_eq!(write("abc", 0).await, Ok(Written { accepted: 3 }));
    assert_eq!(write("abc", 0).await, Ok(Written { accepted: 3 }));
    assert_eq!(write("bcde", 1).await, Ok(Written { accepted: 5 }), "only the new part counts");
    assert_eq!(write("x", 6).await, Err(WriteError::Gap { given: 6, expected: 5 }));
    assert_eq!(process.write_and_close(b"".into(), Some(5)).await, Ok(Written { accepted: 5 }));
    assert_eq!(process.write_and_close(b"".into(), None).await, Ok(Written { accepted: 5 }));
    assert_eq!(process.write(b"more".into(), None).await, Err(WriteError::Closed));
    fixture.anchor.wait_for(1);
    fixture.anchor.tell("exit 0");
    assert_eq!(finish_text(&process).await.1, "abcde");
    // A caller that did not get the answer repeats the request later.
    assert_eq!(write("bcde", 1).await, Ok(Written { accepted: 5 }));
    assert_eq!(process.write_and_close(b"de".into(), Some(3)).await, Ok(Written { accepted: 5 }));
    assert_eq!(write("ef", 4).await, Err(WriteError::Exited), "there is something new in it");
    assert_eq!(write("x", 6).await, Err(WriteError::Exited));
    assert_eq!(process.write(b"more".into(), None).await, Err(WriteError::Exited));
}

#[tokio::test(flavor = "multi_thread")]
async fn stdin_cannot_be_closed_after_the_exit() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(open(&fixture, "hold")).await;
    assert_eq!(process.write(b"abc".into(), Some(0)).await, Ok(Written { accepted: 3 }));
    fixture.anchor.wait_for(1);
    fixture.anchor.tell("exit 0");
    finish(&process).await;
    let close = process.write_and_close(b"abc".into(), Some(0)).await;
    assert_eq!(close, Err(WriteError::Exited));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_is_accepted_while_the_queue_is_full() {
    let fixture = Fixture::new();
    let process = stuffed(&fixture, |_| {}).await;
    let again = process.write(vec![0; QUEUE], Some(0)).await;
    assert_eq!(again, Ok(Written { accepted: QUEUE as u64 }));
    let more = process.write(vec![0; QUEUE], Some(100_000)).await;
    assert!(matches!(more, Err(WriteError::QueueFull { bytes: 100_000, .. })), "{more:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_closes_its_stdin_is_reported() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(open(&fixture, "close-stdin then hold")).await;
    fixture.anchor.wait_for(1);
    process.write(b"nobody reads this".into(), None).await.unwrap();
    let mut stdin = process.stdin().expect("it was opened");
    let broken = stdin.wait_for(|state| state.open == StdinOpen::Broken);
    patiently("EPIPE is told", broken).await.unwrap();
    assert_eq!(process.write(b"more".into(), None).await, Err(WriteError::Broken));
    let again = process.write(b"reads this".into(), Some(7)).await;
    assert_eq!(again, Ok(Written { accepted: 17 }), "it was accepted, and that stays so");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_at_once_until_the_command_reads() {
    let fixture = Fixture::new();
    let process =
        fixture.start_launch(open(&fixture, "join then read-exactly 16777216 then hold")).await;
    process.write(vec![b'x'; QUEUE], None).await.unwrap();
    let mut stdin = process.stdin().expect("it was opened");
    let written = stdin.wait_for(|state| state.written == QUEUE as u64);
    patiently("all of it is read", written).await.unwrap();
    process.write(vec![b'y'; 1000], None).await.unwrap();
}

/// 16 MiB are queued for a command that never reads; nothing else may wait for them.
async fn stuffed(
    fixture: &Fixture,
    mut change: impl FnMut(&mut Launch),
) -> lastbyte_engine::Process {
    let mut launch = open(fixture, "hold");
    change(&mut launch);
    let process = fixture.start_launch(launch).await;
    process.write(vec![0; QUEUE], None).await.unwrap();
    let refused = process.write(vec![0; 100_000], None).await;
    assert!(matches!(refused, Err(WriteError::QueueFull { bytes: 100_000, .. })), "{refused:?}");
    process
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_never_reads_still_times_out() {
    let fixture = Fixture::new();
    // Enough time for the test itself to fill the queue.
    let wall = Some(Duration::from_secs(1));
    let process = stuffed(&fixture, |launch| launch.timeouts = Timeouts { wall, idle: None }).await;
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.cause, Cause::TimedOut { which: Timeout::Wall, escalated: false });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_never_reads_still_gets_signals() {
    let fixture = Fixture::new();
    let process = stuffed(&fixture, |_| {}).await;
    patiently("signal", process.signal(Signal::INT)).await.unwrap();
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.status, Status::Signalled { signal: Signal::INT, core_dumped: false });
    assert_eq!(process.write(b"x".into(), None).await, Err(WriteError::Exited));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_never_reads_can_be_stopped() {
    let fixture = Fixture::new();
    let process = stuffed(&fixture, |launch| launch.stop = StopPolicy::KILL).await;
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    assert_eq!(proof.left, []);
    let (ending, _) = finish(&process).await;
    assert_eq!(ending.cause, Cause::Stopped { verb: Verb::Stop, escalated: false });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_exits_without_reading_ends_at_once() {
    let fixture = Fixture::new();
    let process = fixture.start_launch(open(&fixture, "join then hold")).await;
    fixture.anchor.wait_for(1);
    process.write(vec![0; 1 << 20], None).await.unwrap();
    fixture.anchor.tell("exit 6");
    assert_eq!(finish(&process).await.0.status, Status::Exited(6));
    let state = *process.stdin().expect("opened").borrow();
    assert_ne!(state.open, StdinOpen::Open, "whichever was seen first, the exit or EPIPE");
}
