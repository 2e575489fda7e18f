//! What a command says is in the journal while it is little, and in a file once it is more: to
//! whoever asks it is the same.

use std::path::Path;

use lastbyte_engine::{Id, Kept, Launch, Process, Settings, Status, Streams};
use lastbyte_output::log::Stream;
use lastbyte_testkit::{eventually, inside, pattern_bytes};

use crate::fixture::{finish, patiently, read, read_stream};
use crate::full_disk::{MOUNTS, SmallDisk};
use crate::home::{Home, close, facts, open};

/// How long its file is, if it has one.
fn file(home: &Home, id: Id) -> Option<u64> {
    let path = home.state.path().join(format!("logs/{id}.log"));
    std::fs::metadata(path).ok().map(|about| about.len())
}

async fn said(process: &Process, bytes: u64) {
    patiently("it says that much", process.wait_for(|now| now.extent.len == bytes)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn few_bytes_make_no_file_and_are_there_after_every_restart() {
    let home = Home::new();
    let engine = home.open();
    let actions = "write-bytes 300 then write-bytes 200 err then write-bytes 100 then exit 3";
    let split = Launch { streams: Streams::Split, ..home.launch(actions) };
    let process = engine.start(split).await.unwrap().process;
    finish(&process).await;
    patiently("closed", process.wait_for(|_| false)).await;
    let (id, before) = (process.id(), facts(&process));
    assert_eq!(file(&home, id), None);
    close(engine).await;
    for _ in 0..2 {
        let engine = home.open();
        assert_eq!((engine.restored().ended, engine.restored().removed_files), (1, 0));
        let process = engine.get(id).unwrap();
        assert_eq!(facts(&process), before);
        let snapshot = process.snapshot();
        assert!(read_stream(&process, &snapshot, Stream::Err) == pattern_bytes(0..200));
        assert!(read_stream(&process, &snapshot, Stream::Out) == pattern_bytes(0..400));
        close(engine).await;
    }
    let engine = home.open();
    engine.forget(id).unwrap();
    close(engine).await;
    assert!(home.open().get(id).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_outgrows_the_journal_is_in_a_file_from_its_first_byte() {
    let home = Home::new();
    let engine = home.open();
    let process = engine.start(home.launch("write-bytes 3000 then hold")).await.unwrap().process;
    said(&process, 3000).await;
    assert_eq!(file(&home, process.id()), None);
    home.anchor.wait_for(1);
    home.anchor.tell("write-bytes 3000");
    said(&process, 6000).await;
    assert_eq!(file(&home, process.id()), Some(6000));
    home.anchor.tell("exit 0");
    let (_, bytes) = finish(&process).await;
    assert!(bytes == pattern_bytes(0..6000));
    let (id, before) = (process.id(), facts(&process));
    close(engine).await;
    // It is the file that counts now: without it nothing is made up.
    let engine = home.open();
    assert_eq!(facts(&engine.get(id).unwrap()), before);
    close(engine).await;
    std::fs::remove_file(home.state.path().join(format!("logs/{id}.log"))).unwrap();
    let engine = home.open();
    let dropped = engine.get(id).unwrap().snapshot().extent.dropped;
    assert_eq!(dropped.ranges(), std::slice::from_ref(&(0..6000)));
    close(engine).await;
}

/// The files as a server leaves them that is killed at this instant.
fn copy_of(state: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    std::fs::create_dir(copy.path().join("logs")).unwrap();
    std::fs::copy(state.join("journal"), copy.path().join("journal")).unwrap();
    for entry in std::fs::read_dir(state.join("logs")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.path().join("logs").join(entry.file_name())).unwrap();
    }
    copy
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_seen_of_a_running_command_outlives_the_server() {
    let home = Home::new();
    let engine = home.open();
    let process = engine.start(home.launch("write-bytes 700 then hold")).await.unwrap().process;
    said(&process, 700).await;
    let first = copy_of(home.state.path());
    home.anchor.wait_for(1);
    home.anchor.tell("write-bytes 5000");
    said(&process, 5700).await;
    let second = copy_of(home.state.path());
    home.anchor.tell("exit 0");
    finish(&process).await;
    close(engine).await;
    for (copy, len) in [(first, 700), (second, 5700)] {
        let settings = Settings { state: copy.path().to_owned(), ..home.settings() };
        let engine = open(settings);
        let lost = engine.get(process.id()).unwrap();
        let snapshot = lost.snapshot();
        assert!(matches!(snapshot.ending().unwrap().status, Status::Lost(_)));
        assert_eq!(snapshot.output_len(), len);
        assert!(read(&lost, &snapshot, 0..len) == pattern_bytes(0..len));
        close(engine).await;
    }
}

/// A read of such a pipe comes back short although there is more.
#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_that_gives_out_packets_is_emptied_while_the_command_lives() {
    let home = Home::new();
    let engine = home.open();
    let process = engine.start(home.launch("packets 9 then hold")).await.unwrap().process;
    said(&process, 90).await;
    home.anchor.wait_for(1);
    home.anchor.tell("exit 0");
    let (_, bytes) = finish(&process).await;
    assert!(bytes == pattern_bytes(0..90));
    close(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_output_brings_what_came_before_into_its_file() {
    let home = Home::new();
    let engine = home.open();
    let launch = home.launch("write-bytes 20 then background hold end");
    let process = engine.start(launch).await.unwrap().process;
    patiently("it ends", process.ended()).await;
    assert_eq!(file(&home, process.id()), None);
    home.anchor.wait_for(1);
    home.anchor.tell("write-bytes 30");
    said(&process, 50).await;
    assert_eq!(file(&home, process.id()), Some(50));
    home.anchor.tell("exit 0");
    patiently("closed", process.wait_for(|_| false)).await;
    let (id, before) = (process.id(), facts(&process));
    close(engine).await;
    let engine = home.open();
    assert_eq!(facts(&engine.get(id).unwrap()), before);
    close(engine).await;
}

/// A secret that was printed by mistake is forgotten on purpose.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_forgotten_is_gone_from_the_disk_with_the_server() {
    let home = Home::new();
    let engine = home.open();
    let has = |text: &str| home.journal().windows(text.len()).any(|part| part == text.as_bytes());
    let kept = engine.start(home.launch("print some-words")).await.unwrap().process;
    let process = engine.start(home.launch("print secret-then-gone")).await.unwrap().process;
    finish(&kept).await;
    finish(&process).await;
    assert!(has("secret"));
    engine.forget(process.id()).unwrap();
    close(engine).await;
    assert!(has("some-words") && !has("secret"));
}

/// Forgetting a file made room on a disk that was full; so must forgetting what has none.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_a_journal_filled_has_room_again_when_most_is_forgotten() {
    let name = "short_logs::a_disk_that_a_journal_filled_has_room_again_when_most_is_forgotten";
    if !inside(name, &MOUNTS) {
        return;
    }
    for keep in [0, 10] {
        let home = Home::new();
        let _disk = SmallDisk::at(home.state.path());
        let engine = home.open();
        let run = async || {
            let process = engine.start(home.launch("write-bytes 4000")).await.unwrap().process;
            let (ending, _) = finish(&process).await;
            (process.id(), ending.kept.clone())
        };
        let mut ids = Vec::new();
        loop {
            let (id, kept) = run().await;
            ids.push(id);
            if kept != Kept::Whole {
                break;
            }
        }
        assert!(ids.len() > 100, "{}", ids.len());
        ids.drain(keep..).for_each(|id| engine.forget(id).unwrap());
        // At one of the next endings.
        let whole = async {
            loop {
                let (id, kept) = run().await;
                if kept == Kept::Whole {
                    break id;
                }
                engine.forget(id).unwrap();
            }
        };
        ids.push(patiently("there is room", whole).await);
        close(engine).await;
        let engine = home.open();
        assert_eq!(engine.restored().ended, keep + 1);
        for id in ids {
            let process = engine.get(id).unwrap();
            let snapshot = process.snapshot();
            assert!(read(&process, &snapshot, 0..4000) == pattern_bytes(0..4000));
        }
        close(engine).await;
    }
}

/// More than the journal is let grow to before it is written anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_is_written_anew_has_what_is_of_interest() {
    let home = Home::new();
    let engine = home.open();
    let mut kept = Vec::new();
    for number in 0..360 {
        let process = engine.start(home.launch("write-bytes 4000")).await.unwrap().process;
        finish(&process).await;
        match number % 60 {
            0 => kept.push((process.id(), facts(&process))),
            _ => engine.forget(process.id()).unwrap(),
        }
    }
    eventually("it is written anew", || home.journal().len() < 1 << 20);
    close(engine).await;
    let engine = home.open();
    for (id, before) in &kept {
        assert_eq!(facts(&engine.get(*id).unwrap()), *before);
    }
    close(engine).await;
}
