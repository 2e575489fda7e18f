//! An engine that continues with the state of another: nothing is lost, and nothing is made up.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_engine::{
    Delivery, Difference, Engine, EnvEdit, EventKind, Field, Filter, ForgetError, Id, Kept, Key,
    Launch, Limits, LogSource, LostWhy, OnQuota, OnTimeout, Retention, Session, Settings, Signal,
    SpawnFuture, Spawner, StartError, Status, Stdin, StopPolicy, Streams, Timeouts, Verb,
    WriteError,
};
use lastbyte_output::log::{Piece, Quota, Stream};
use lastbyte_output::views::Source;
use lastbyte_sys::spawn::{ChildEnds, Request};
use lastbyte_testkit::{eventually, is_alive, pattern_bytes};
use tokio::task::JoinSet;

use crate::fixture::{HOUR, finish, patiently, read, read_stream};
use crate::home::{Home, close, facts, open};
use crate::log_files::copy_of;

#[tokio::test(flavor = "multi_thread")]
async fn ended_processes_are_unchanged_after_a_restart() {
    let home = Home::new();
    let engine = home.open();
    let mut split = home.launch("write-bytes 5000 then write-bytes 700 err then exit 3");
    split.streams = Streams::Split;
    split.session = Some(Session("s".into()));
    split.labels = [("l".to_owned(), "v".to_owned())].into();
    split.timeouts = Timeouts { wall: Some(HOUR), idle: Some(2 * HOUR) };
    split.on_timeout = OnTimeout::Background;
    split.quota = Quota::new(1 << 20).unwrap();
    let Launch { timeouts, on_timeout, quota, on_quota, .. } = split;
    let limits = Some(Limits { timeouts, on_timeout, quota, on_quota });
    let launches = [split, home.launch("exit 0"), home.launch("print x then kill-self 11")];
    let mut before = Vec::new();
    for launch in launches {
        let process = engine.start(launch).await.unwrap().process;
        finish(&process).await;
        patiently("closed", process.wait_for(|_| false)).await;
        before.push(facts(&process));
    }
    let ids = |engine: &lastbyte_engine::Engine| -> Vec<Id> {
        let page = engine.list(&Filter::default(), None, 10);
        page.processes.iter().map(|(process, _)| process.id()).collect()
    };
    let old = ids(&engine);
    close(engine).await;
    // Twice: what was read back is written down again.
    for _ in 0..2 {
        let engine = home.open();
        assert_eq!((engine.restored().ended, engine.restored().lost), (3, 0));
        assert_eq!(ids(&engine), old);
        let all: Vec<_> = old.iter().rev().map(|id| engine.get(*id).unwrap()).collect();
        assert_eq!(all.iter().map(facts).collect::<Vec<_>>(), before);
        assert_eq!(all[0].spec().limits, limits);
        let snapshot = all[0].snapshot();
        assert!(read_stream(&all[0], &snapshot, Stream::Out) == pattern_bytes(0..5000));
        assert!(read_stream(&all[0], &snapshot, Stream::Err) == pattern_bytes(0..700));
        assert_eq!(LogSource::output(all[0].reader(), snapshot).end(), 5700);
        let (ending, _) = patiently("it has ended", finish(&all[0])).await;
        assert_eq!(ending.status, Status::Exited(3));
        close(engine).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_about_a_restored_process_are_answered_at_once() {
    let home = Home::new();
    let engine = home.open();
    let id = {
        let process = engine.start(home.launch("print x")).await.unwrap().process;
        finish(&process).await;
        process.id()
    };
    close(engine).await;
    let engine = home.open();
    let process = engine.get(id).unwrap();
    assert_eq!(process.signal(Signal::TERM).await, Ok(Delivery::Nobody));
    assert_eq!(process.write(vec![1], None).await, Err(WriteError::NotOpen));
    let proof = patiently("a proof", process.stop(Verb::Stop)).await;
    assert!(proof.signalled.is_empty() && proof.left.is_empty(), "{proof:?}");
    assert_eq!(patiently("survivors", process.survivors()).await, []);
    patiently("the end of the log", process.until_past(1)).await;
    assert_eq!(engine.feed().since(0, 9).newest, 0, "nothing has happened to it here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_process_stays_forgotten_and_its_key_is_free() {
    let home = Home::new();
    let engine = home.open();
    let keyed = |actions: &str| Launch { key: Some(Key("k".into())), ..home.launch(actions) };
    let id = {
        let process = engine.start(keyed("print x")).await.unwrap().process;
        finish(&process).await;
        process.id()
    };
    close(engine).await;
    let engine = home.open();
    engine.forget(id).unwrap();
    assert!(matches!(engine.forget(id), Err(ForgetError::NotFound { .. })));
    let event = engine.feed().since(0, 9).events.pop().unwrap();
    assert_eq!((event.process.id, &event.kind), (id, &EventKind::Forgotten));
    close(engine).await;
    let engine = home.open();
    assert!(engine.get(id).is_none());
    assert_eq!(std::fs::read_dir(home.state.path().join("logs")).unwrap().count(), 0);
    let started = engine.start(keyed("print y")).await.unwrap();
    assert!(!started.attached && started.process.id() > id);
}

fn in_conflict(differs: Difference) -> StartError {
    StartError::KeyConflict { key: Key("k".into()), differs }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_a_conflict_of_keys_says_what_is_known() {
    let home = Home::new();
    let keyed = || Launch { key: Some(Key("k".into())), ..home.launch("print x") };
    let engine = home.open();
    finish(&engine.start(keyed()).await.unwrap().process).await;
    close(engine).await;
    let engine = home.open();
    let known = async |change: fn(&mut Launch)| {
        let mut other = keyed();
        change(&mut other);
        engine.start(other).await.expect_err("another launch")
    };
    let variables = vec!["A".into()];
    let named = known(|other| other.env.push(EnvEdit::Unset("A".into()))).await;
    assert_eq!(named, in_conflict(Difference::Known { fields: vec![Field::Env], variables }));
    for (change, field) in [
        ((|other| other.timeouts.wall = Some(HOUR)) as fn(&mut Launch), Field::Timeouts),
        (|other| other.on_quota = OnQuota::Block, Field::Quota),
    ] {
        let fields = Difference::Known { fields: vec![field], variables: vec![] };
        assert_eq!(known(change).await, in_conflict(fields));
    }
    let unknown = known(|other| other.stdin = Stdin::Open).await;
    assert_eq!(
        unknown.to_string(),
        "the key \"k\" was already used for a start that differs in its working directory, variables, \
         standard input or drain (after a restart it is not known which)"
    );
    close(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_returns_the_same_process_after_a_restart() {
    let home = Home::new();
    let keyed = |actions: &str| Launch { key: Some(Key("k".into())), ..home.launch(actions) };
    let mut seen = Vec::new();
    for round in 0..2 {
        let engine = home.open();
        let mut starts = JoinSet::new();
        for _ in 0..50 {
            let (engine, launch) = (engine.clone(), keyed("print x"));
            starts.spawn(async move {
                let started = engine.start(launch).await.expect("it starts");
                (started.process.id(), started.attached)
            });
        }
        let answers = patiently("all are answered", starts.join_all()).await;
        let ours = answers.iter().filter(|(_, attached)| !attached).count();
        assert_eq!(ours, usize::from(round == 0));
        seen.extend(answers.into_iter().map(|(id, _)| id));
        let conflict = engine.start(keyed("print y")).await.expect_err("another launch");
        let fields = vec![Field::Command];
        assert_eq!(conflict, in_conflict(Difference::Known { fields, variables: vec![] }));
        finish(&engine.get(seen[0]).unwrap()).await;
        close(engine).await;
    }
    assert!(seen.iter().all(|id| *id == seen[0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn late_output_and_dropped_ranges_survive_a_restart() {
    let home = Home::new();
    let engine = home.open();
    let quota = lastbyte_output::log::Quota::new(256 << 10).unwrap();
    let launch = Launch { quota, ..home.launch("write-bytes 2000000 then background hold end") };
    let process = engine.start(launch).await.unwrap().process;
    let ending = patiently("it ends", process.ended()).await;
    assert!(matches!(ending.kept, Kept::Dropped(_)), "{:?}", ending.kept);
    home.anchor.wait_for(1);
    home.anchor.tell("write-bytes 1000000");
    patiently("late output", process.wait_for(|now| now.extent.len == 3_000_000)).await;
    home.anchor.tell("exit 0");
    patiently("closed", process.wait_for(|_| false)).await;
    assert_eq!(process.snapshot().extent.dropped.ranges().len(), 2);
    let (id, before) = (process.id(), facts(&process));
    close(engine).await;
    assert_eq!(facts(&home.open().get(id).unwrap()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_of_a_truncated_or_missing_log_are_reported_as_dropped() {
    let home = Home::new();
    let engine = home.open();
    let (mut ids, mut logs) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let process = engine.start(home.launch("write-bytes 9000")).await.unwrap().process;
        finish(&process).await;
        ids.push(process.id());
        logs.push(process.log_file().unwrap().to_owned());
    }
    close(engine).await;
    File::options().write(true).open(&logs[0]).unwrap().set_len(4000).unwrap();
    std::fs::remove_file(&logs[1]).unwrap();
    let engine = home.open();
    for (id, kept) in ids.into_iter().zip([4000, 0]) {
        let process = engine.get(id).unwrap();
        let snapshot = process.snapshot();
        assert_eq!((snapshot.extent.len, snapshot.output_len()), (9000, 9000));
        assert_eq!(snapshot.extent.dropped.ranges(), std::slice::from_ref(&(kept..9000)));
        assert!(read(&process, &snapshot, 0..kept) == pattern_bytes(0..kept));
        let missing = process.reader().read(&snapshot, kept, &mut [0; 10]).unwrap();
        assert_eq!(missing, Piece::Dropped(kept..9000));
        let lost = Kept::Dropped(snapshot.extent.dropped.clone());
        assert_eq!(snapshot.ending().unwrap().kept, lost, "whole it was only when it ended");
    }
}

/// Of a file whose length had reached the disk when the power went, and not its last bytes.
#[tokio::test(flavor = "multi_thread")]
async fn zeros_at_the_end_of_a_log_are_output_only_in_the_same_boot() {
    let home = Home::new();
    let engine = home.open();
    let launch = home.launch("write-bytes 9000 then print \\0\\0\\0");
    let process = engine.start(launch).await.unwrap().process;
    finish(&process).await;
    let (id, before) = (process.id(), facts(&process));
    close(engine).await;
    let engine = home.open();
    assert_eq!(facts(&engine.get(id).unwrap()), before);
    close(engine).await;
    std::fs::write(home.state.path().join("boot"), "another").unwrap();
    // Twice: what was found is written down.
    for _ in 0..2 {
        let engine = home.open();
        let process = engine.get(id).unwrap();
        let snapshot = process.snapshot();
        let dropped = &snapshot.extent.dropped;
        assert_eq!(snapshot.extent.len, 9003);
        assert_eq!(dropped.ranges(), std::slice::from_ref(&(9000..9003)));
        assert_eq!(snapshot.ending().unwrap().kept, Kept::Dropped(dropped.clone()));
        assert!(read(&process, &snapshot, 0..9000) == pattern_bytes(0..9000));
        close(engine).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_without_a_record_are_set_aside_and_the_others_are_counted() {
    let home = Home::new();
    let engine = home.open();
    let process = engine.start(home.launch("write-bytes 100000")).await.unwrap().process;
    finish(&process).await;
    close(engine).await;
    let logs = home.state.path().join("logs");
    let others = ["01900000-0000-7000-8000-000000000000.log", "700.log", "x.index", "y"];
    for name in others {
        std::fs::write(logs.join(name), "left over").unwrap();
    }
    for name in ["800.log", "z"] {
        std::fs::write(logs.join(name), "").unwrap();
    }
    let engine = home.open();
    assert_eq!(engine.restored().removed_files, 0);
    let (folder, files) = engine.restored().set_aside.clone().unwrap();
    assert_eq!(files, others.len(), "an empty file is nobody's");
    for name in others {
        assert_eq!(std::fs::read(folder.join(name)).unwrap(), b"left over");
    }
    assert_eq!(std::fs::read_dir(&logs).unwrap().count(), 1);
    close(engine).await;
    // The old log does not fit into this disk quota, and is the first to be dropped.
    let engine = open(lastbyte_engine::Settings { disk_quota: 50_000, ..home.settings() });
    let gone = || engine.get(process.id()).is_none();
    eventually("room is made", || {
        engine.sweep(tokio::time::Instant::now());
        gone()
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_counts_from_the_ending() {
    let home = Home::new();
    let engine = home.open();
    let process = engine.start(home.launch("print x")).await.unwrap().process;
    finish(&process).await;
    close(engine).await;
    let retention = Retention { at_most: Duration::from_secs(100), ..Retention::default() };
    let engine = open(lastbyte_engine::Settings { retention, ..home.settings() });
    // After a restart its age is at most half of that, whatever the clock says.
    let now = tokio::time::Instant::now();
    engine.sweep(now + Duration::from_secs(49));
    assert!(engine.get(process.id()).is_some());
    engine.sweep(now + Duration::from_secs(101));
    assert!(engine.get(process.id()).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn survivors_of_an_ended_process_are_found_and_stopped_with_proof() {
    let home = Home::new();
    let engine = home.open();
    let id = {
        let process = engine.start(home.launch("setsid-background hold end")).await.unwrap();
        finish(&process.process).await;
        process.process.id()
    };
    let pids = home.anchor.wait_for(1);
    close(engine).await;
    let engine = home.open();
    let process = engine.get(id).unwrap();
    assert!(is_alive(pids[0]), "a restart kills nobody");
    let found = patiently("survivors", process.survivors()).await;
    assert_eq!(found.iter().map(|one| one.pid.unsigned_abs()).collect::<Vec<_>>(), pids);
    let proof = patiently("a proof", process.stop_by(StopPolicy::KILL, Verb::Stop)).await;
    assert_eq!((proof.gone.len(), proof.left.len()), (1, 0), "{proof:?}");
    assert!(!is_alive(pids[0]));
}

/// Not a crash: the owners end with their runtime, kill their trees and record it.
#[test]
fn a_runtime_that_shuts_down_leaves_lost_processes_with_their_output() {
    let home = Home::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let process = runtime.block_on(async {
        let engine = home.open();
        let process = engine.start(home.launch("print x then hold")).await.unwrap().process;
        patiently("output", process.until_past(0)).await;
        process
    });
    runtime.shutdown_timeout(Duration::from_secs(10));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let again = home.open().get(process.id()).unwrap();
        let ending = again.snapshot().ending().cloned().unwrap();
        assert_eq!(ending.status, Status::Lost(LostWhy::OwnerGone));
        assert_eq!(facts(&again), facts(&process));
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_is_still_known_after_a_restart() {
    let home = Home::new();
    let engine = home.open();
    let mut launch = home.launch("sleep-ms 100");
    launch.timeouts.wall = Some(Duration::from_millis(1));
    launch.on_timeout = OnTimeout::Background;
    let process = engine.start(launch).await.unwrap().process;
    finish(&process).await;
    let at = process.snapshot().timed_out_at;
    assert!(at.is_some());
    let id = process.id();
    drop(process);
    close(engine).await;
    // Twice: what was read back is written down again.
    for _ in 0..2 {
        let engine = home.open();
        assert_eq!(engine.get(id).unwrap().snapshot().timed_out_at, at);
        close(engine).await;
    }
}

/// Creates no child, or one that passes its gate, and never answers.
#[derive(Debug)]
struct NoSpawner {
    passes: bool,
}

impl Spawner for NoSpawner {
    fn spawn(&self, request: Request, _: ChildEnds) -> SpawnFuture<'_> {
        if self.passes {
            let gate = request.gate.expect("a start with a key has a gate");
            std::fs::remove_file(gate.to_str().unwrap()).unwrap();
        }
        Box::pin(std::future::pending())
    }
}

/// The state folder of a server that was killed during ten starts with keys.
async fn killed_while_starting(home: &Home, passes: bool) -> tempfile::TempDir {
    let settings = Settings { spawners: Some(1), ..home.settings() };
    let engine = Engine::with_spawner(settings, Arc::new(NoSpawner { passes })).unwrap();
    for number in 0..10 {
        let (engine, launch) = (engine.clone(), numbered(home, number));
        tokio::spawn(async move { engine.start(launch).await });
    }
    // On one thread, each has run until it waits.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    copy_of(home.state.path())
}

fn numbered(home: &Home, number: i32) -> Launch {
    Launch { key: Some(Key(number.to_string())), ..home.launch(&format!("exit {number}")) }
}

/// How many of the ten run when they are repeated; the others are lost.
async fn retry_all(engine: &Engine, home: &Home) -> usize {
    let mut ran = 0;
    for number in 0..10 {
        let started = engine.start(numbered(home, number)).await.unwrap();
        let status = patiently("an ending", started.process.ended()).await.status;
        if started.attached {
            assert!(matches!(status, Status::Lost(_)), "{status:?}")
        } else {
            assert_eq!(status, Status::Exited(number))
        }
        ran += usize::from(!started.attached);
    }
    ran
}

#[tokio::test]
async fn a_key_whose_command_never_ran_starts_it_after_the_server_was_killed() {
    let home = Home::new();
    let state = killed_while_starting(&home, false).await;
    let engine = open(Settings { state: state.path().to_owned(), ..home.settings() });
    assert_eq!(engine.restored().lost, 0);
    assert_eq!(retry_all(&engine, &home).await, 10);
    close(engine).await;
    let engine = open(Settings { state: state.path().to_owned(), ..home.settings() });
    assert_eq!((engine.restored().ended, engine.restored().lost), (10, 0));
    close(engine).await;
}

/// Only two of the ten had reached a spawner.
#[tokio::test]
async fn a_key_whose_command_may_have_run_never_starts_it_again() {
    let home = Home::new();
    let state = killed_while_starting(&home, true).await;
    let engine = open(Settings { state: state.path().to_owned(), ..home.settings() });
    assert_eq!(engine.restored().lost, 2);
    assert_eq!(retry_all(&engine, &home).await, 8);
    close(engine).await;
}
