//! Output is kept up to a quota, and every dropped byte is accounted for.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use lastbyte_engine::{Kept, Launch, OnQuota, Process, Status, Streams};
use lastbyte_output::log::{Piece, Quota, Stream};
use lastbyte_testkit::pattern_bytes;

use crate::fixture::{Fixture, finish, patiently, read, runs};

/// Full size is 1 GiB through 64 MiB; the environment variable sets the output in MiB.
fn sizes() -> (u64, Quota) {
    match std::env::var("LASTBYTE_TEST_QUOTA_MIB").ok().and_then(|n| n.parse::<u64>().ok()) {
        Some(mib) => (mib << 20, Quota::DEFAULT),
        None => (24 << 20, Quota::new(1 << 20).unwrap()),
    }
}

fn launch(fixture: &Fixture, bytes: u64, quota: Quota) -> Launch {
    Launch { quota, ..fixture.launch(&format!("write-bytes {bytes}")) }
}

/// The disk space of all log files.
fn on_disk(fixture: &Fixture) -> u64 {
    let folder: &Path = &fixture.state.path().join("logs");
    let blocks = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.metadata().ok();
    std::fs::read_dir(folder).unwrap().filter_map(blocks).map(|file| file.blocks() * 512).sum()
}

/// Reads from a cursor to the end, over and over, checking every byte against the pattern. On a
/// separate thread, because it never yields.
fn check_from(process: &Process, first: u64) {
    let reader = process.reader();
    let mut chunk = vec![0; 50_000];
    loop {
        let snapshot = process.snapshot();
        let mut at = first.min(snapshot.extent.len);
        loop {
            match reader.read(&snapshot, at, &mut chunk).unwrap() {
                Piece::Bytes(count) => {
                    let range = at..at + count as u64;
                    assert!(chunk[..count] == pattern_bytes(range.clone()), "wrong in {range:?}");
                    at = range.end;
                }
                Piece::Dropped(range) => {
                    assert!(range.start == at && range.end > at, "{range:?} at {at}");
                    at = range.end;
                }
                Piece::End => break,
            }
        }
        if snapshot.ending().is_some() {
            return;
        }
    }
}

/// The most disk space used at once until the process ended.
fn watch_disk(fixture: &Fixture, process: &Process) -> u64 {
    let mut most = 0;
    while process.snapshot().ending().is_none() {
        most = most.max(on_disk(fixture));
    }
    most
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_at_every_cursor_never_see_a_zero_that_was_not_written() {
    let fixture = Fixture::new();
    let (bytes, quota) = sizes();
    let process = fixture.start_launch(launch(&fixture, bytes, quota)).await;
    let most = std::thread::scope(|threads| {
        for nth in 0..4 {
            let process = &process;
            threads.spawn(move || check_from(process, bytes * nth / 4));
        }
        threads.spawn(|| watch_disk(&fixture, &process)).join().unwrap()
    });
    // One step may be written while the previous one is being freed.
    let bound = quota.bytes() + quota.bytes() / 8 + (64 << 10);
    assert!(most <= bound, "{most} bytes on disk, at most {bound} were to be");

    let (ending, snapshot) = (process.ended().await, process.snapshot());
    assert_eq!((ending.status, ending.final_len), (Status::Exited(0), bytes));
    let Kept::Dropped(dropped) = &ending.kept else { panic!("{:?}", ending.kept) };
    let [gone] = dropped.ranges() else { panic!("{dropped:?}") };
    assert!(gone.start >= quota.bytes().min(4 << 20) / 4, "the head stays: {gone:?}");
    assert!(bytes - gone.end >= quota.bytes() / 2, "and the newest bytes: {gone:?}");
    assert_eq!(gone.start + dropped.bytes() + (bytes - gone.end), bytes, "all accounted for");
    assert!(read(&process, &snapshot, 0..gone.start) == pattern_bytes(0..gone.start));
    assert!(read(&process, &snapshot, gone.end..bytes) == pattern_bytes(gone.end..bytes));
}

/// A slow reader with a hold sees every byte; the command waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_with_a_hold_misses_nothing() {
    let fixture = Fixture::new();
    let (bytes, quota) = sizes();
    let launch = Launch { on_quota: OnQuota::Block, ..launch(&fixture, bytes, quota) };
    let process = fixture.start_launch(launch).await;
    let hold = process.hold().expect("launched to block");
    // It has not read a byte yet, so nothing past the quota is stored.
    let held_back = process.wait_for(|snapshot| snapshot.extent.len >= quota.bytes());
    patiently("the command is held back", held_back).await;
    let (reader, mut at, mut chunk) = (process.reader(), 0, vec![0; 30_000]);
    while at < bytes {
        let snapshot = patiently("more output", process.until_past(at)).await;
        let ahead = snapshot.extent.len - at;
        assert!(ahead <= quota.bytes() + (1 << 20), "{ahead} bytes ahead of the reader");
        match reader.read(&snapshot, at, &mut chunk).unwrap() {
            Piece::Bytes(count) => {
                let range = at..at + count as u64;
                assert!(chunk[..count] == pattern_bytes(range.clone()), "wrong in {range:?}");
                at = range.end;
                hold.advance(at);
            }
            other => panic!("{other:?} at {at}"),
        }
    }
    assert_eq!(finish_status(&process).await, (Status::Exited(0), bytes));
    // The head, a quota ahead of the reader, and what was in the pipe at the exit.
    assert!(on_disk(&fixture) <= quota.bytes() * 5 / 4 + (1 << 20) + (256 << 10));
}

async fn finish_status(process: &Process) -> (Status, u64) {
    let ending = patiently("the process ends", process.ended()).await;
    (ending.status, ending.final_len)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_ends_when_its_reader_goes_away() {
    let fixture = Fixture::new();
    let (bytes, quota) = sizes();
    let launch = Launch { on_quota: OnQuota::Block, ..launch(&fixture, bytes, quota) };
    let process = fixture.start_launch(launch).await;
    let full = process.wait_for(|snapshot| snapshot.extent.len >= quota.bytes());
    patiently("it is held back", full).await;
    drop(process.hold());
    assert_eq!(finish_status(&process).await, (Status::Exited(0), bytes));
}

#[tokio::test(flavor = "multi_thread")]
async fn late_output_does_not_displace_earlier_output() {
    let fixture = Fixture::new();
    let (bytes, quota) = sizes();
    let actions = "write-bytes 300000 then leave-silent-holder";
    let launch = Launch { quota, ..fixture.launch(actions) };
    let process = fixture.start_launch(launch).await;
    let (ending, before) = finish(&process).await;
    assert_eq!(ending.final_len, 300_000);
    fixture.anchor.wait_for(1);
    fixture.anchor.tell(&format!("write-bytes {bytes}"));
    let all = 300_000 + bytes;
    let late = process.wait_for(|snapshot| snapshot.extent.len == all);
    let snapshot = patiently("all late output", late).await;
    let [gone] = snapshot.extent.dropped.ranges() else { panic!("{:?}", snapshot.extent) };
    assert!(gone.start >= 300_000, "only late output is dropped: {gone:?}");
    assert!(read(&process, &snapshot, 0..300_000) == before);
    let tail = read(&process, &snapshot, gone.end..all);
    // The holder is another process: its pattern starts again.
    assert!(tail == pattern_bytes(gone.end - 300_000..bytes));
    assert!(on_disk(&fixture) <= quota.bytes() + (1 << 20));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_index_of_alternating_streams_is_bounded() {
    let fixture = Fixture::new();
    let quota = Quota::new(256 << 10).unwrap();
    let mut launch = fixture.launch("alternate 400000 then print end");
    (launch.quota, launch.streams) = (quota, Streams::Split);
    let process = fixture.start_launch(launch).await;
    let (ending, snapshot) = (patiently("it ends", process.ended()).await, process.snapshot());
    assert_eq!(ending.final_len, 800_003);
    assert!(on_disk(&fixture) <= quota.bytes() * 9 / 8 + (16 << 10), "{}", on_disk(&fixture));
    let [gone] = snapshot.extent.dropped.ranges() else { panic!("{:?}", snapshot.extent) };
    // Every byte that is kept still has its stream.
    for range in [0..gone.start, gone.end..800_000] {
        let runs = runs(&process, &snapshot, range.clone());
        assert_eq!(runs.first().map(|run| run.range.start), Some(range.start));
        assert_eq!(runs.last().map(|run| run.range.end), Some(range.end));
        assert!(runs.windows(2).all(|pair| pair[0].range.end == pair[1].range.start));
        let out: u64 = runs
            .iter()
            .filter(|run| run.stream == Stream::Out)
            .map(|run| run.range.end - run.range.start)
            .sum();
        let all = range.end - range.start;
        assert!(out.abs_diff(all - out) <= 64 << 10, "{out} of {all} in {range:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_logs_share_a_limit_and_ended_ones_are_dropped_first() {
    let fixture = Fixture::with(|settings| settings.disk_quota = 8 << 20);
    let old = fixture.start("write-bytes 3000000").await;
    finish(&old).await;
    let flood = fixture.start("flood").await;
    let past = flood.until_past(100 << 20);
    let snapshot = patiently("a hundred MiB", past).await;
    assert!(snapshot.ending().is_none());
    patiently("the old log is forgotten", async {
        while fixture.engine.get(old.id()).is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    patiently("the running log is squeezed", async {
        while on_disk(&fixture) > 9 << 20 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    flood.stop(lastbyte_engine::Verb::Stop).await;
}
