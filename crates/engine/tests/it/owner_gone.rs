//! An owner that goes away kills its tree and leaves nobody waiting.

use std::sync::atomic::Ordering;
use std::time::Duration;

use lastbyte_engine::{
    Engine, EnvEdit, FromKeeper, Launch, LostWhy, Reach, ReachChoice, Settings, Status,
};
use lastbyte_sys::registry::Registry;
use lastbyte_testkit::{Anchor, eventually, is_alive, script};

use crate::fixture::{check_nothing_made_up, sure_reaches};

#[test]
fn a_runtime_that_shuts_down_kills_the_tree_and_readers_see_lost() {
    for reach in sure_reaches() {
        check(reach, "setsid-background hold end then double-fork-background hold end then hold");
    }
    // By group, a process that left the group is not reached.
    check(Reach::Group, "background hold end then background hold end then hold");
}

fn check(reach: Reach, actions: &str) {
    let state = tempfile::tempdir().unwrap();
    let anchor = Anchor::listen();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (name, value) = anchor.env();
    let process = runtime.block_on(async {
        let reach = ReachChoice::Only(reach);
        let engine = Engine::new(Settings { reach, ..Settings::new(state.path()) }).unwrap();
        let mut launch = lastbyte_engine::Launch::argv(script(actions));
        launch.env = vec![lastbyte_engine::EnvEdit::Set(name.into(), value)];
        engine.start(launch).await.expect("it starts").process
    });
    let pids = anchor.wait_for(3);
    runtime.shutdown_timeout(Duration::from_secs(10));
    eventually("the whole tree is dead", || pids.iter().all(|pid| !is_alive(*pid)));
    let snapshot = process.snapshot();
    let ending = snapshot.ending().expect("readers see an end");
    assert_eq!(ending.status, Status::Lost(LostWhy::OwnerGone));
    check_nothing_made_up(ending);
    assert!(!snapshot.log_open);
    eventually("no zombie stays", || lastbyte_sys::procfs::read_stat(process.pid()).is_err());
}

/// In a program of its own, as nextest runs each test: who adopts orphans is set for all of it.
#[test]
fn an_owner_that_goes_away_reaps_its_leader_and_frees_its_slot() {
    let state = tempfile::tempdir().unwrap();
    let anchor = Anchor::listen();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (registry, _file) = Registry::create().unwrap();
    registry.header().generation.store(1, Ordering::SeqCst);
    let (name, value) = anchor.env();
    let process = runtime.block_on(async {
        let reach = ReachChoice::Only(Reach::Group);
        let settings = Settings { reach, ..Settings::new(state.path()) };
        let keeper = std::process::id().cast_signed();
        let from_keeper = FromKeeper { registry, keeper, inherited: vec![] };
        let engine = Engine::kept(settings, from_keeper).unwrap();
        let mut launch = Launch::argv(script("hold"));
        launch.env = vec![EnvEdit::Set(name.into(), value)];
        engine.start(launch).await.expect("it starts").process
    });
    anchor.wait_for(1);
    assert_eq!(registry.used().count(), 1);
    runtime.shutdown_timeout(Duration::from_secs(10));
    eventually("no zombie stays", || lastbyte_sys::procfs::read_stat(process.pid()).is_err());
    eventually("its slot is free", || registry.used().count() == 0);
}
