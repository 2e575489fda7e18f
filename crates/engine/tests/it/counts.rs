//! An engine counts exactly what happens.

use std::time::Duration;

use lastbyte_engine::{
    CauseKind, Counts, EnvEdit, Key, Launch, Phases, Process, Refused, StatusKind, StopPolicy,
    Survivors, Timeouts, Verb,
};
use lastbyte_output::log::Quota;
use tokio::task::JoinSet;

use crate::fixture::{Fixture, HOUR, drain, finish, patiently};
use crate::home::{Home, close};

/// Endings by status and cause, without zeros.
fn endings(counts: &Counts) -> Vec<(StatusKind, CauseKind, u64)> {
    let all =
        StatusKind::ALL.iter().flat_map(|status| CauseKind::ALL.map(|cause| (*status, cause)));
    let counted = all.map(|(status, cause)| (status, cause, counts.endings(status, cause)));
    counted.filter(|(_, _, count)| *count > 0).collect()
}

fn refusals(counts: &Counts) -> Vec<(Refused, u64)> {
    let counted = Refused::ALL.map(|why| (why, counts.refused(why)));
    counted.into_iter().filter(|(_, count)| *count > 0).collect()
}

async fn until_closed(process: &Process) {
    patiently("its log is closed", process.wait_for(|_| false)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_start_and_ending_is_counted_once() {
    let fixture = Fixture::new();
    let counts = fixture.engine.counts();
    for actions in ["exit 0", "exit 3", "kill-self 15"] {
        finish(&fixture.start(actions).await).await;
    }
    let late = Launch {
        timeouts: Timeouts { wall: Some(Duration::from_millis(1)), idle: None },
        stop: StopPolicy::KILL,
        ..fixture.launch("join then hold")
    };
    finish(&fixture.start_launch(late).await).await;
    let held = fixture.start("join then hold").await;
    let (starts, ended) = (counts.starts(), endings(counts));
    assert_eq!(fixture.engine.phases(), Phases { running: 1, draining: 0, ended: 4, lost: 0 });
    patiently("a proof", held.stop_by(StopPolicy::KILL, Verb::Stop)).await;
    finish(&held).await;

    assert_eq!(starts, 5);
    let mut want = vec![
        (StatusKind::Exited, CauseKind::Own, 2),
        (StatusKind::Signalled, CauseKind::Own, 1),
        (StatusKind::Signalled, CauseKind::TimedOut, 1),
    ];
    assert_eq!(ended, want);
    want.push((StatusKind::Signalled, CauseKind::Stopped, 1));
    assert_eq!(endings(counts), want);
    assert_eq!(counts.spawns().snapshot().count(), 5);
    assert_eq!((counts.forgotten(), refusals(counts)), (0, vec![]));
    until_closed(&held).await;
    fixture.engine.forget(held.id()).unwrap();
    assert_eq!(counts.forgotten(), 1);
    assert_eq!(fixture.engine.phases(), Phases { running: 0, draining: 0, ended: 4, lost: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_start_is_counted_by_its_reason_and_not_as_a_start() {
    let fixture = Fixture::new();
    let (engine, counts) = (&fixture.engine, fixture.engine.counts());
    let refused =
        async |launch: Launch| engine.start(launch).await.expect_err("it is refused").refused();
    let argv = |program: &str| fixture.launch_argv(vec![program.into()]);
    let keyed = |actions: &str| Launch { key: Some(Key("k".into())), ..fixture.launch(actions) };
    let cwd = Launch { cwd: Some("/no/such/folder".into()), ..fixture.launch("exit 0") };
    let name = EnvEdit::Set("A=B".into(), "c".into());
    let named = Launch { env: vec![name], ..fixture.launch("exit 0") };
    assert_eq!(refused(named).await, Refused::Launch);
    assert_eq!(refused(cwd.clone()).await, Refused::Cwd);
    assert_eq!(refused(cwd).await, Refused::Cwd);
    assert_eq!(refused(argv("/no/such/program")).await, Refused::ProgramNotFound);
    assert_eq!(refused(argv("/etc/passwd")).await, Refused::ProgramNotRunnable);
    let process = engine.start(keyed("exit 0")).await.unwrap().process;
    assert!(engine.start(keyed("exit 0")).await.unwrap().attached);
    assert_eq!(refused(keyed("exit 1")).await, Refused::KeyConflict);
    finish(&process).await;
    patiently("the engine closes", engine.close(Survivors::Stop)).await;
    assert_eq!(refused(fixture.launch("exit 0")).await, Refused::Closed);

    let want = [
        (Refused::Launch, 1),
        (Refused::Cwd, 2),
        (Refused::ProgramNotFound, 1),
        (Refused::ProgramNotRunnable, 1),
        (Refused::KeyConflict, 1),
        (Refused::Closed, 1),
    ];
    assert_eq!(refusals(counts), want);
    assert_eq!((counts.starts(), counts.spawns().snapshot().count()), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn stored_and_dropped_bytes_are_counted() {
    let fixture = Fixture::new();
    let counts = fixture.engine.counts();
    let quota = Quota::new(256 << 10).unwrap();
    let (mut stored, mut dropped) = (0, 0);
    for bytes in [0, 1000, 3 << 20, 5 << 20] {
        let launch = Launch { quota, ..fixture.launch(&format!("write-bytes {bytes}")) };
        let process = fixture.start_launch(launch).await;
        patiently("the process ends", process.ended()).await;
        until_closed(&process).await;
        let extent = process.snapshot().extent;
        assert_eq!(extent.len, bytes);
        stored += extent.len;
        dropped += extent.dropped.bytes();
        assert_eq!((counts.stored_bytes(), counts.dropped_bytes()), (stored, dropped));
    }
    assert!(dropped > 6 << 20, "{dropped}");
    let used = fixture.engine.disk_used();
    assert!((stored - dropped..=1 << 20).contains(&used), "{used} of {stored} - {dropped}");
}

#[tokio::test(flavor = "multi_thread")]
async fn late_output_is_counted() {
    let fixture = Fixture::new();
    let launch = fixture.launch("leave-tail");
    // The tail is written in two parts 30 ms apart, or more on a busy machine.
    let rule = drain(Duration::from_secs(1), HOUR);
    let process = fixture.start_launch(Launch { drain: rule, ..launch }).await;
    patiently("the process ends", process.ended()).await;
    assert_eq!(fixture.engine.counts().stored_bytes(), 4);
    fixture.anchor.wait_for(1);
    fixture.anchor.tell("print later");
    patiently("late output", process.until_past(8)).await;
    assert_eq!(fixture.engine.counts().stored_bytes(), 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_correct_with_sixteen_clients_at_once() {
    let fixture = Fixture::new();
    let mut clients = JoinSet::new();
    for _ in 0..16 {
        let (engine, launch) = (fixture.engine.clone(), fixture.launch("write-bytes 1000"));
        let missing = fixture.launch_argv(vec!["/no/such/program".into()]);
        clients.spawn(async move {
            for _ in 0..8 {
                let process = engine.start(launch.clone()).await.expect("it starts").process;
                process.ended().await;
                engine.start(missing.clone()).await.expect_err("there is no such program");
            }
        });
    }
    patiently("all clients are done", clients.join_all()).await;
    let counts = fixture.engine.counts();
    assert_eq!(counts.starts(), 128);
    assert_eq!(endings(counts), [(StatusKind::Exited, CauseKind::Own, 128)]);
    assert_eq!(refusals(counts), [(Refused::ProgramNotFound, 128)]);
    assert_eq!(counts.stored_bytes(), 128_000);
    assert_eq!(counts.spawns().snapshot().count(), 128);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_phases_are_correct_and_counts_start_at_zero() {
    let home = Home::new();
    let engine = home.open();
    for actions in ["exit 0", "print x"] {
        finish(&engine.start(home.launch(actions)).await.unwrap().process).await;
    }
    assert_eq!(engine.phases(), Phases { running: 0, draining: 0, ended: 2, lost: 0 });
    close(engine).await;
    let engine = home.open();
    assert_eq!(engine.phases(), Phases { running: 0, draining: 0, ended: 2, lost: 0 });
    assert_eq!(engine.phases().all(), 2);
    assert_eq!((engine.counts().starts(), endings(engine.counts())), (0, vec![]));
}
