//! Ended means complete: many processes of mixed kinds, several readers each.

use std::sync::Arc;

use lastbyte_engine::{Closing, Phase, Process, Status, Stdin, Streams};
use lastbyte_output::log::Piece;
use lastbyte_testkit::pattern_bytes;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::fixture::{Fixture, patiently, read_stream};

/// Full size is 3,000; the environment variable sets it.
fn processes() -> usize {
    std::env::var("LASTBYTE_TEST_PROCESSES").ok().and_then(|n| n.parse().ok()).unwrap_or(180)
}

/// What a process of one kind does, and what readers must see of it.
#[derive(Clone, Copy)]
struct Kind {
    actions: &'static str,
    streams: Streams,
    /// Bytes the leader writes to stdout and stderr, in the pattern; `None` if it is killed in the
    /// middle and any prefix of the pattern is correct.
    writes: Option<(u64, u64)>,
    status: Option<Status>,
    held: bool,
}

const fn kind(actions: &'static str, out: u64, err: u64, streams: Streams) -> Kind {
    let status = Some(Status::Exited(0));
    Kind { actions, streams, writes: Some((out, err)), status, held: false }
}

const KINDS: [Kind; 6] = [
    kind("write-bytes 300000", 300_000, 0, Streams::Merged),
    kind("write-bytes 70000 then write-bytes 50000 err", 70_000, 50_000, Streams::Split),
    Kind { writes: None, status: None, ..kind("abort-mid-write 400000", 0, 0, Streams::Merged) },
    Kind {
        held: true,
        ..kind("write-bytes 100000 then leave-silent-holder", 100_000, 0, Streams::Merged)
    },
    kind(
        "write-bytes 5000 then close-stdout then close-stderr then exit 0",
        5000,
        0,
        Streams::Merged,
    ),
    kind("write-bytes 66000 then exit 0", 66_000, 0, Streams::Merged),
];

#[tokio::test(flavor = "multi_thread")]
async fn no_reader_ever_sees_an_ending_without_the_last_byte() {
    let fixture = Arc::new(Fixture::new());
    let at_once = Arc::new(Semaphore::new(24));
    let mut all = JoinSet::new();
    for number in 0..processes() {
        let permit = Arc::clone(&at_once).acquire_owned().await.unwrap();
        let (fixture, kind) = (Arc::clone(&fixture), KINDS[number % KINDS.len()]);
        all.spawn(async move {
            one(&fixture, kind).await;
            drop(permit);
        });
    }
    while let Some(done) = all.join_next().await {
        done.unwrap();
    }
}

async fn one(fixture: &Fixture, kind: Kind) {
    let mut launch = fixture.launch(kind.actions);
    launch.streams = kind.streams;
    // The last kind never reads its input.
    launch.stdin = Stdin::Open;
    let process = fixture.start_launch(launch).await;
    _ = process.write(vec![7; 100_000], None).await;
    let mut readers = JoinSet::new();
    for _ in 0..3 {
        readers.spawn(follow(process.clone()));
    }
    readers.spawn(hammer(process.clone()));
    readers.spawn(wait_only(process.clone()));
    let lengths = patiently("all readers see the end", readers.join_all()).await;
    let ending = process.ended().await;
    assert!(lengths.iter().all(|len| *len == ending.final_len), "{lengths:?} {ending:?}");
    if let Some(status) = kind.status {
        assert_eq!(ending.status, status);
    }
    assert_eq!(matches!(ending.closing, Closing::Held(_)), kind.held, "{ending:?}");
    check_bytes(&process, kind, ending.final_len);
}

fn check_bytes(process: &Process, kind: Kind, final_len: u64) {
    use lastbyte_output::log::Stream::{Err, Out};
    let snapshot = process.snapshot();
    let (out, err) = kind.writes.unwrap_or((final_len, 0));
    assert_eq!(final_len, out + err, "{}", kind.actions);
    assert!(read_stream(process, &snapshot, Out) == pattern_bytes(0..out), "{}", kind.actions);
    assert!(read_stream(process, &snapshot, Err) == pattern_bytes(0..err), "{}", kind.actions);
}

/// Reads every byte as it arrives; the cursor never goes back and ends at the final length.
async fn follow(process: Process) -> u64 {
    let reader = process.reader();
    let (mut cursor, mut chunk) = (0, vec![0; 20_000]);
    loop {
        let snapshot = process
            .wait_for(|snapshot| snapshot.extent.len > cursor || snapshot.ending().is_some())
            .await;
        while cursor < snapshot.output_len() {
            match reader.read(&snapshot, cursor, &mut chunk).unwrap() {
                Piece::Bytes(count) => cursor += count as u64,
                other => panic!("{other:?} at {cursor}"),
            }
        }
        if let Some(ending) = snapshot.ending() {
            assert_eq!(cursor, ending.final_len, "an ending comes with all of its bytes");
            return cursor;
        }
    }
}

/// Polls as often as it can: no length shrinks, and no phase goes back.
async fn hammer(process: Process) -> u64 {
    let mut last = (0, 0);
    loop {
        let snapshot = process.snapshot();
        let order = match &snapshot.phase {
            Phase::Running => 0,
            Phase::Draining => 1,
            Phase::Ended(_) => 2,
        };
        assert!(order >= last.0 && snapshot.extent.len >= last.1, "{last:?} then {snapshot:?}");
        last = (order, snapshot.extent.len);
        if let Phase::Ended(ending) = &snapshot.phase {
            assert!(snapshot.extent.len >= ending.final_len);
            return ending.final_len;
        }
        tokio::task::yield_now().await;
    }
}

async fn wait_only(process: Process) -> u64 {
    let ending = process.ended().await;
    assert!(process.snapshot().extent.len >= ending.final_len);
    ending.final_len
}
