//! A retry is safe: one key, one process.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};

use lastbyte_engine::{
    Difference, EnvEdit, Field, ForgetError, Key, Launch, Process, StartError, Started, Stdin,
};
use tokio::task::{JoinSet, spawn_blocking};

use crate::fixture::{Fixture, HOUR, finish, patiently};

fn keyed(fixture: &Fixture, actions: &str, key: &str) -> Launch {
    Launch { key: Some(Key(key.into())), ..fixture.launch(actions) }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_starts_with_one_key_are_one_process() {
    let fixture = Fixture::new();
    let mut starts = JoinSet::new();
    for _ in 0..50 {
        let (engine, launch) = (fixture.engine.clone(), keyed(&fixture, "join then hold", "k"));
        starts.spawn(async move { engine.start(launch).await.expect("it starts") });
    }
    let started: Vec<Started> = patiently("all are answered", starts.join_all()).await;
    assert_eq!(started.iter().filter(|one| !one.attached).count(), 1);
    assert!(started.iter().all(|one| one.process.id() == started[0].process.id()));
    assert_eq!(fixture.anchor.wait_for(1).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_kept_exactly_as_long_as_its_process() {
    let fixture = Fixture::new();
    let first = fixture.engine.start(keyed(&fixture, "print 1", "k")).await.unwrap();
    finish(&first.process).await;
    let again = fixture.engine.start(keyed(&fixture, "print 1", "k")).await.unwrap();
    assert!(again.attached && again.process.id() == first.process.id());
    let found = |key: &str| fixture.engine.keyed(&Key(key.into())).map(|process| process.id());
    assert_eq!((found("k"), found("other")), (Some(first.process.id()), None));
    patiently("closed", first.process.wait_for(|_| false)).await;
    fixture.engine.forget(first.process.id()).unwrap();
    assert_eq!(found("k"), None);
    let new = fixture.engine.start(keyed(&fixture, "print 1", "k")).await.unwrap();
    assert!(!new.attached && new.process.id() != first.process.id());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_with_another_launch_is_a_conflict() {
    let fixture = Fixture::new();
    fixture.engine.start(keyed(&fixture, "print 1", "k")).await.unwrap();
    let check = async |change: fn(&mut Launch), fields: &[Field], variables: &[&str]| {
        let mut other = keyed(&fixture, "print 1", "k");
        change(&mut other);
        let error = fixture.engine.start(other).await.expect_err("a conflict");
        let variables = variables.iter().map(|name| (*name).into()).collect();
        let differs = Difference::Known { fields: fields.into(), variables };
        assert_eq!(error, StartError::KeyConflict { key: Key("k".into()), differs });
    };
    check(|other| other.program = Launch::shell("true").program, &[Field::Command], &[]).await;
    let set = |other: &mut Launch| other.env.push(EnvEdit::Set("A".into(), "secret".into()));
    check(set, &[Field::Env], &["A"]).await;
    check(|other| other.env.push(other.env[0].clone()), &[Field::Env], &[]).await;
    let several = |other: &mut Launch| {
        other.timeouts.wall = Some(HOUR);
        other.cwd = Some("/".into());
        other.stdin = Stdin::Given(b"secret".to_vec());
    };
    check(several, &[Field::Cwd, Field::Stdin, Field::Timeouts], &[]).await;
}

/// On one thread, so that no other task can continue the start before its caller goes away.
#[tokio::test]
async fn a_start_continues_when_its_caller_goes_away() {
    let fixture = Fixture::new();
    {
        let mut start = pin!(fixture.engine.start(keyed(&fixture, "join then hold", "k")));
        let mut context = Context::from_waker(Waker::noop());
        assert!(start.as_mut().poll(&mut context).is_pending());
    }
    let retry = fixture.engine.start(keyed(&fixture, "join then hold", "k"));
    let retried = patiently("the retry is answered", retry).await.unwrap();
    assert!(retried.attached);
    assert_eq!(fixture.anchor.wait_for(1).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_start_failed_can_be_used_again() {
    let fixture = Fixture::new();
    let mut broken = keyed(&fixture, "print 1", "k");
    broken.cwd = Some("/no/such/folder".into());
    fixture.engine.start(broken).await.expect_err("no such folder");
    let started = fixture.engine.start(keyed(&fixture, "print 1", "k")).await.unwrap();
    assert!(!started.attached);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_whose_log_cannot_be_removed_keeps_its_key() {
    let fixture = Fixture::new();
    let first =
        fixture.engine.start(keyed(&fixture, "write-bytes 5000", "k")).await.unwrap().process;
    finish(&first).await;
    let stuck = make_stuck(&first);
    let refused = fixture.engine.forget(first.id());
    assert!(matches!(refused, Err(ForgetError::Remove { .. })), "{refused:?}");
    let again = fixture.engine.start(keyed(&fixture, "write-bytes 5000", "k")).await.unwrap();
    assert!(again.attached && again.process.id() == first.id());
    std::fs::remove_dir(&stuck).unwrap();
    fixture.engine.forget(first.id()).unwrap();
    assert!(fixture.engine.get(first.id()).is_none());
}

/// A process is without its key while its log is being removed, and has it no more if that fails and another
/// process was started with it meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_another_process_has_taken_stays_with_that() {
    let fixture = Fixture::new();
    let start = async || {
        let started = fixture.engine.start(keyed(&fixture, "write-bytes 5000", "k")).await;
        let started = started.unwrap();
        (started.process, started.attached)
    };
    let first = start().await.0;
    finish(&first).await;
    let stuck = make_stuck(&first);
    let (engine, id, is_taken) = (fixture.engine.clone(), first.id(), Arc::<AtomicBool>::default());
    let stop = Arc::clone(&is_taken);
    let forgetting = spawn_blocking(move || {
        while !stop.load(Ordering::Relaxed) {
            engine.forget(id).expect_err("its log cannot be removed");
        }
    });
    let second = patiently("the key is taken", async {
        loop {
            if let (process, false) = start().await {
                break process;
            }
        }
    });
    let second = second.await;
    is_taken.store(true, Ordering::Relaxed);
    forgetting.await.unwrap();
    std::fs::remove_dir(&stuck).unwrap();
    fixture.engine.forget(first.id()).unwrap();
    let (process, attached) = start().await;
    assert!(attached && process.id() == second.id());
}

/// A folder in place of its index cannot be removed as a file.
fn make_stuck(process: &Process) -> PathBuf {
    let stuck = process.log_file().unwrap().with_extension("index");
    _ = std::fs::remove_file(&stuck);
    std::fs::create_dir(&stuck).unwrap();
    stuck
}
