//! A program that adopts orphans leaves no zombies and never takes a leader's exit status.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lastbyte_engine::{Launch, OrphanReaper, Status};
use lastbyte_sys::orphans;
use lastbyte_testkit::{children_of, eventually};
use tokio::task::JoinSet;

use crate::fixture::{Fixture, finish, patiently};

#[tokio::test(flavor = "multi_thread")]
async fn an_adopted_orphan_leaves_no_zombie() {
    let _reaper = OrphanReaper::start().unwrap();
    let fixture = Fixture::new();
    let process = fixture.start("double-fork-background hold end then exit 0").await;
    finish(&process).await;
    let orphans = fixture.anchor.wait_for(1);
    assert_eq!(children_of(std::process::id()), orphans, "it is ours now");
    fixture.anchor.tell("exit 0");
    eventually("it is reaped", || children_of(std::process::id()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_tree_leaves_no_zombie() {
    let _reaper = OrphanReaper::start().unwrap();
    let fixture = Fixture::new();
    let process = fixture.start("tree 60 mixed then hold").await;
    fixture.anchor.wait_for(61);
    patiently("stop", process.stop(lastbyte_engine::Verb::Stop)).await;
    finish(&process).await;
    eventually("all are reaped", || children_of(std::process::id()).is_empty());
}

/// Reaps as fast as possible while leaders end as fast as possible.
#[tokio::test(flavor = "multi_thread")]
async fn the_orphan_reaper_never_takes_a_leaders_status() {
    orphans::adopt().unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let reaper = std::thread::spawn({
        let done = Arc::clone(&done);
        move || {
            while !done.load(Ordering::Relaxed) {
                orphans::reap();
            }
        }
    });
    let fixture = Fixture::new();
    let mut starts = JoinSet::new();
    for code in 0..300 {
        let engine = fixture.engine.clone();
        starts.spawn(async move {
            let launch = Launch::shell(format!("(sleep 0 &) ; exit {}", code % 200));
            let process = engine.start(launch).await.unwrap().process;
            let ending = patiently("it ends", process.ended()).await;
            assert_eq!(ending.status, Status::Exited(code % 200));
            // A status from the fallback has no usage: it would show that the status was taken.
            assert!(ending.usage.is_some(), "{ending:?}");
        });
    }
    starts.join_all().await;
    eventually("no zombie stays", || children_of(std::process::id()).is_empty());
    done.store(true, Ordering::Relaxed);
    reaper.join().unwrap();
}
