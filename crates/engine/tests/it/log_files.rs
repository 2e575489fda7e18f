//! Log files: they are reused, and nobody reads the output of another process.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lastbyte_engine::{Engine, Kept, Launch, Process, Settings, Status, Streams};
use lastbyte_output::log::Stream;
use lastbyte_testkit::{eventually, inside, open_targets, pattern_bytes};

use crate::fixture::{finish, patiently, read, read_stream};
use crate::full_disk::{MOUNTS, SmallDisk};
use crate::home::{Home, close, empty_files, facts, open};

async fn until_written(process: &Process, bytes: u64) {
    patiently("it says that much", process.wait_for(|now| now.extent.len == bytes)).await;
}

/// An engine whose pool of log files is full, and their folder.
async fn filled(home: &Home) -> (Engine, PathBuf) {
    let (engine, logs) = (home.open(), home.state.path().join("logs"));
    finish(&engine.start(home.launch("exit 0")).await.unwrap().process).await;
    // A sweep does this last, after the file went back.
    eventually("a sweep is over", || home.state.path().join("journal.reserve").exists());
    eventually("files are made ahead", || empty_files(&logs).len() == 16);
    (engine, logs)
}

/// The empty files, whatever their names.
fn inodes(logs: &Path) -> HashSet<u64> {
    // A file may have got another name since it was listed.
    let names = empty_files(logs).into_iter();
    names.filter_map(|name| fs::metadata(logs.join(name)).ok()).map(|file| file.ino()).collect()
}

/// At least 15 of 16 free files are those of before: while a command has one, the thread that fills
/// the pool may add a last file of its own. After 17 commands that did not give theirs back, none is.
fn until_reused(before: &HashSet<u64>, logs: &Path) {
    let reused = || inodes(logs).intersection(before).count();
    eventually("at least 15 of the files are free again", || reused() >= 15);
}

/// Runs a command to its end; also returns its log file.
async fn run(engine: &Engine, home: &Home, actions: &str) -> (Process, PathBuf) {
    let before = home.anchor.count();
    let launch = home.launch(&format!("{actions} then hold"));
    let process = engine.start(launch).await.unwrap().process;
    home.anchor.wait_for(before + 1);
    let file = process.log_file().unwrap().to_owned();
    home.anchor.tell("exit 0");
    finish(&process).await;
    eventually("it lets go of the anchor", || home.anchor.count() == before);
    (process, file)
}

#[tokio::test(flavor = "multi_thread")]
async fn short_output_needs_no_file_after_the_end_and_survives_restarts() {
    let home = Home::new();
    let engine = home.open();
    let actions = "write-bytes 300 then write-bytes 200 err then write-bytes 100 then exit 3";
    let split = Launch { streams: Streams::Split, ..home.launch(actions) };
    let process = engine.start(split).await.unwrap().process;
    finish(&process).await;
    patiently("closed", process.wait_for(|_| false)).await;
    let (id, before) = (process.id(), facts(&process));
    assert_eq!(process.log_file(), None);
    close(engine).await;
    for _ in 0..2 {
        let engine = home.open();
        assert_eq!((engine.restored().ended, engine.restored().removed_files), (1, 0));
        let process = engine.get(id).unwrap();
        assert_eq!((facts(&process), process.log_file()), (before.clone(), None));
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
async fn longer_output_stays_in_its_file() {
    let home = Home::new();
    let engine = home.open();
    let process = engine.start(home.launch("write-bytes 3000 then hold")).await.unwrap().process;
    let file = process.log_file().unwrap().to_owned();
    let len = || fs::metadata(&file).unwrap().len();
    until_written(&process, 3000).await;
    assert_eq!(len(), 3000);
    home.anchor.wait_for(1);
    home.anchor.tell("write-bytes 3000");
    until_written(&process, 6000).await;
    assert_eq!(len(), 6000);
    home.anchor.tell("exit 0");
    let (_, bytes) = finish(&process).await;
    assert!(bytes == pattern_bytes(0..6000));
    assert_eq!(process.log_file(), Some(&*file));
    let (id, before) = (process.id(), facts(&process));
    close(engine).await;
    let engine = home.open();
    assert_eq!(facts(&engine.get(id).unwrap()), before);
    close(engine).await;
    // Without the file no bytes are made up.
    fs::remove_file(&file).unwrap();
    let engine = home.open();
    let dropped = engine.get(id).unwrap().snapshot().extent.dropped;
    assert_eq!(dropped.ranges(), std::slice::from_ref(&(0..6000)));
    // Its number is not used again.
    let another = engine.start(home.launch("write-bytes 6000")).await.unwrap().process;
    finish(&another).await;
    assert_ne!(another.log_file(), Some(&*file));
    close(engine).await;
}

/// A file is reused while nobody needs its contents.
#[tokio::test(flavor = "multi_thread")]
async fn a_reused_file_never_mixes_outputs() {
    let home = Home::new();
    let (engine, logs) = filled(&home).await;
    let before = inodes(&logs);
    let mut ended = Vec::new();
    for number in 100..120 {
        ended.push(run(&engine, &home, &format!("print number-{number}")).await.0);
        eventually("its file is free", || empty_files(&logs).len() == 16);
    }
    until_reused(&before, &logs);
    let launch = home.launch("print running then hold");
    let running = engine.start(launch).await.unwrap().process;
    until_written(&running, 7).await;
    let copy = copy_of(home.state.path());
    for engine in [&engine, &open(Settings { state: copy.path().to_owned(), ..home.settings() })] {
        for (number, process) in (100..).zip(&ended) {
            let process = engine.get(process.id()).unwrap();
            let text = format!("number-{number}");
            assert_eq!(read(&process, &process.snapshot(), 0..10), text.as_bytes());
        }
        let running = engine.get(running.id()).unwrap();
        assert_eq!(read(&running, &running.snapshot(), 0..7), b"running");
        // Forgetting earlier users of the file does not affect the running process.
        ended.iter().for_each(|process| engine.forget(process.id()).unwrap());
        assert_eq!(read(&running, &running.snapshot(), 0..7), b"running");
    }
    close(engine).await;
}

/// After a power loss the journal can be older than the files.
#[tokio::test(flavor = "multi_thread")]
async fn if_the_journal_is_older_than_the_files_a_lost_process_shows_no_output_of_another() {
    for first in ["hold", "print own then hold"] {
        let home = Home::new();
        let (engine, logs) = filled(&home).await;
        let process = engine.start(home.launch(first)).await.unwrap().process;
        home.anchor.wait_for(1);
        let journal = home.journal();
        home.anchor.tell("exit 0");
        finish(&process).await;
        eventually("its file is free", || empty_files(&logs).len() == 16);
        // Enough to use every file again.
        for _ in 0..17 {
            let launch = home.launch("print another then hold");
            until_written(&engine.start(launch).await.unwrap().process, 7).await;
        }
        let copy = copy_of(home.state.path());
        fs::write(copy.path().join("journal"), journal).unwrap();
        let later = open(Settings { state: copy.path().to_owned(), ..home.settings() });
        let lost = later.get(process.id()).unwrap().snapshot();
        assert!(matches!(lost.ending().unwrap().status, Status::Lost(_)));
        assert_eq!(lost.extent.len, 0, "{first}");
        close(later).await;
        close(engine).await;
    }
}

/// The server was killed between the record and the truncation.
#[tokio::test(flavor = "multi_thread")]
async fn short_output_is_read_from_its_record_even_if_the_file_was_not_emptied() {
    let home = Home::new();
    let (engine, _) = filled(&home).await;
    let (process, file) = run(&engine, &home, "print own").await;
    close(engine).await;
    for name in [file.clone(), file.with_extension("index")] {
        fs::write(name, "not emptied").unwrap();
    }
    let engine = home.open();
    let again = engine.get(process.id()).unwrap();
    assert_eq!(read(&again, &again.snapshot(), 0..3), b"own");
    assert_eq!((again.snapshot().extent.len, &engine.restored().set_aside), (3, &None));
    assert_eq!(fs::read_dir(home.state.path().join("logs")).unwrap().count(), 0);
    close(engine).await;
}

/// The file is the only copy that outlives the server.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_kept_while_the_record_of_the_ending_waits_for_the_disk() {
    let home = Home::new();
    let (engine, _) = filled(&home).await;
    let (journal, away) = (home.state.path().join("journal"), home.state.path().join("away"));
    let launch = home.launch("print precious then hold");
    let process = engine.start(launch).await.unwrap().process;
    until_written(&process, 8).await;
    let file = process.log_file().unwrap().to_owned();
    fs::rename(&journal, &away).unwrap();
    fs::write(&journal, "of a backup").unwrap();
    home.anchor.wait_for(1);
    home.anchor.tell("exit 0");
    finish(&process).await;
    assert_eq!(process.is_recorded(), Some(false));
    // Once the file is closed, nobody can empty it.
    eventually("its owner is gone", || !open_targets().contains(&file));
    assert_eq!(fs::read(&file).unwrap(), b"precious");
    fs::rename(&away, &journal).unwrap();
    let copy = copy_of(home.state.path());
    let later = open(Settings { state: copy.path().to_owned(), ..home.settings() });
    let lost = later.get(process.id()).unwrap();
    assert_eq!(read(&lost, &lost.snapshot(), 0..8), b"precious");
    close(later).await;
    engine.sweep(tokio::time::Instant::now());
    assert_eq!(process.is_recorded(), Some(true));
    engine.forget(process.id()).unwrap();
    assert!(!file.exists());
    close(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_fails_gives_its_file_back() {
    let home = Home::new();
    let (engine, logs) = filled(&home).await;
    let before = inodes(&logs);
    for _ in 0..40 {
        engine.start(Launch::argv(["/no/such/program"])).await.unwrap_err();
    }
    eventually("its file is free", || empty_files(&logs).len() == 16);
    until_reused(&before, &logs);
    close(engine).await;
    assert_eq!(fs::read_dir(&logs).unwrap().count(), 0);
}

/// No number in the records that are left can be of a file of another process.
#[tokio::test(flavor = "multi_thread")]
async fn after_damage_in_the_journal_what_it_still_names_keeps_its_output() {
    let home = Home::new();
    let (engine, _) = filled(&home).await;
    let (long, _) = run(&engine, &home, "write-bytes 6000").await;
    let launch = home.launch("print own then hold");
    let process = engine.start(launch).await.unwrap().process;
    until_written(&process, 3).await;
    let damaged = home.journal().len() + 30;
    let later = engine.start(home.launch("write-bytes 5000")).await.unwrap().process;
    finish(&later).await;
    let copy = copy_of(home.state.path());
    let mut bytes = home.journal();
    bytes[damaged] ^= 1;
    fs::write(copy.path().join("journal"), bytes).unwrap();
    let settings = Settings { state: copy.path().to_owned(), ..home.settings() };
    let restored = open(settings);
    assert!(restored.get(later.id()).is_none());
    assert_eq!(facts(&restored.get(long.id()).unwrap()), facts(&long));
    let lost = restored.get(process.id()).unwrap();
    assert_eq!(read(&lost, &lost.snapshot(), 0..3), b"own");
    let (aside, _) = restored.restored().set_aside.clone().unwrap();
    let name = later.log_file().unwrap().file_name().unwrap();
    assert_eq!(fs::read(aside.join(name)).unwrap(), pattern_bytes(0..5000));
    close(restored).await;
    close(engine).await;
}

/// A copy of the files, as if the server were killed at this moment.
pub fn copy_of(state: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    fs::copy(state.join("journal"), copy.path().join("journal")).unwrap();
    for folder in ["logs", "starting"] {
        fs::create_dir(copy.path().join(folder)).unwrap();
        for entry in fs::read_dir(state.join(folder)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), copy.path().join(folder).join(entry.file_name())).unwrap();
        }
    }
    copy
}

#[tokio::test(flavor = "multi_thread")]
async fn output_of_a_running_command_outlives_the_server() {
    let home = Home::new();
    let engine = home.open();
    let process = engine.start(home.launch("write-bytes 700 then hold")).await.unwrap().process;
    until_written(&process, 700).await;
    let first = copy_of(home.state.path());
    home.anchor.wait_for(1);
    home.anchor.tell("write-bytes 5000");
    until_written(&process, 5700).await;
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

/// A read of such a pipe returns one packet although there is more.
#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_with_packets_is_read_while_the_command_runs() {
    let home = Home::new();
    let engine = home.open();
    let process = engine.start(home.launch("packets 9 then hold")).await.unwrap().process;
    until_written(&process, 90).await;
    home.anchor.wait_for(1);
    home.anchor.tell("exit 0");
    let (_, bytes) = finish(&process).await;
    assert!(bytes == pattern_bytes(0..90));
    close(engine).await;
}

/// With each size the last read of the pipe ends at another point.
#[tokio::test(flavor = "multi_thread")]
async fn packets_of_any_size_are_kept_whole() {
    let home = Home::new();
    let engine = home.open();
    for size in [1, 10, 700, 3000, 4095, 4096, 4097, 6000, 65_536] {
        for (streams, stream) in [(Streams::Merged, "out"), (Streams::Split, "err")] {
            let actions = format!("packets 3 {size} {stream}");
            let launch = Launch { streams, ..home.launch(&actions) };
            let process = engine.start(launch).await.unwrap().process;
            let (ending, bytes) = finish(&process).await;
            assert_eq!(ending.kept, Kept::Whole);
            assert!(bytes == pattern_bytes(0..3 * size), "{} of 3 × {size}", bytes.len());
        }
    }
    close(engine).await;
}

/// The pipe is read at the end, when it has both plain bytes and packets.
#[tokio::test(flavor = "multi_thread")]
async fn packets_after_plain_bytes_are_kept_whole() {
    let home = Home::new();
    let engine = home.open();
    for plain in [1, 4000, 5000, 30_000] {
        let actions = format!("write-bytes {plain} then packets 5 4096 then packets 5 1");
        let (ending, bytes) =
            finish(&engine.start(home.launch(&actions)).await.unwrap().process).await;
        assert_eq!(ending.kept, Kept::Whole);
        assert!(bytes == pattern_bytes(0..plain + 5 * 4097), "{} behind {plain}", bytes.len());
    }
    close(engine).await;
}

/// It keeps its file until it is forgotten, even with little output.
#[tokio::test(flavor = "multi_thread")]
async fn output_that_is_held_open_stays_in_its_file() {
    let home = Home::new();
    let engine = home.open();
    let launch = home.launch("write-bytes 20 then background hold end");
    let process = engine.start(launch).await.unwrap().process;
    patiently("it ends", process.ended()).await;
    let file = process.log_file().unwrap().to_owned();
    home.anchor.wait_for(1);
    home.anchor.tell("write-bytes 30");
    until_written(&process, 50).await;
    assert_eq!(fs::metadata(&file).unwrap().len(), 50);
    home.anchor.tell("exit 0");
    patiently("closed", process.wait_for(|_| false)).await;
    let (id, before) = (process.id(), facts(&process));
    close(engine).await;
    let engine = home.open();
    assert_eq!(facts(&engine.get(id).unwrap()), before);
    engine.forget(id).unwrap();
    assert!(!file.exists());
    close(engine).await;
}

/// Users forget a process to erase a secret that it printed.
#[tokio::test(flavor = "multi_thread")]
async fn forgotten_output_is_gone_from_the_disk_when_the_server_ends() {
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

/// Forgetting processes must free disk space, even if their output is only in the journal.
#[tokio::test(flavor = "multi_thread")]
async fn forgetting_processes_frees_a_disk_that_the_journal_filled() {
    let name = "log_files::forgetting_processes_frees_a_disk_that_the_journal_filled";
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
            (process, ending.kept.clone())
        };
        let mut ids = Vec::new();
        loop {
            let (process, kept) = run().await;
            ids.push(process.id());
            if kept != Kept::Whole {
                break;
            }
        }
        assert!(ids.len() > 100, "{}", ids.len());
        ids.drain(keep..).for_each(|id| engine.forget(id).unwrap());
        // The space is freed at one of the next endings.
        let whole = async {
            loop {
                let (process, kept) = run().await;
                if kept == Kept::Whole && process.is_recorded() == Some(true) {
                    break process.id();
                }
                engine.forget(process.id()).unwrap();
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

/// More output than the journal may hold before it is rewritten.
#[tokio::test(flavor = "multi_thread")]
async fn a_rewritten_journal_has_all_kept_processes() {
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
