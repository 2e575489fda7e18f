//! An owner that goes away kills its tree and leaves nobody waiting.

use std::fs;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use lastbyte_engine::{
    Engine, EnvEdit, FromKeeper, Launch, LostWhy, Process, Reach, ReachChoice, Settings, Status,
};
use lastbyte_sys::registry::Registry;
use lastbyte_sys::{cgroup, orphans};
use lastbyte_testkit::{Anchor, eventually, is_alive, open_targets, script};

use crate::fixture::{check_nothing_made_up, finish, patiently, read, sure_reaches};
use crate::home::{Home, close, open};
use crate::log_files::copy_of;

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

/// An owner wakes those that wait for its process, and one of them can panic.
struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("expected: the owner of one process panics");
    }
}

/// In a program of its own, as above.
#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_panics_ends_its_own_process_and_no_other() {
    // As a keeper does: a scan looks only among what descends from it.
    orphans::adopt().unwrap();
    for reach in sure_reaches() {
        let (home, others) = (Home::new(), Anchor::listen());
        let (registry, _file) = Registry::create().unwrap();
        registry.header().generation.store(1, Ordering::SeqCst);
        let keeper = std::process::id().cast_signed();
        let from_keeper = FromKeeper { registry, keeper, inherited: vec![] };
        let settings = Settings { reach: ReachChoice::Only(reach), ..home.settings() };
        let engine = Engine::kept(settings, from_keeper).unwrap();
        let start = async |anchor: &Anchor, actions| {
            let (name, value) = anchor.env();
            let env = vec![EnvEdit::Set(name.into(), value)];
            let launch = Launch { env, ..Launch::argv(script(actions)) };
            engine.start(launch).await.expect("it starts").process
        };
        let [first, last] = [start(&others, "hold").await, start(&others, "hold").await];
        others.wait_for(2);
        let before = pipes_and_pidfds();
        let victim = start(&home.anchor, "setsid-background hold end then hold").await;
        let pids = home.anchor.wait_for(2);
        let cgroup = cgroup_of(&victim);
        let mut waiting = pin!(victim.wait_for(|now| now.extent.len > 1000));
        let waker = Waker::from(Arc::new(Panics));
        assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        home.anchor.tell("print words");
        let ending = patiently("callers see an end", victim.ended()).await;
        assert_eq!(ending.status, Status::Lost(LostWhy::OwnerGone));
        check_nothing_made_up(&ending);
        assert_eq!(read(&victim, &victim.snapshot(), 0..5), b"words");
        eventually("its tree is dead", || pids.iter().all(|pid| !is_alive(*pid)));
        eventually("no zombie stays", || lastbyte_sys::procfs::read_stat(victim.pid()).is_err());
        eventually("its slot is free", || registry.used().count() == 2);
        eventually("its descriptors are closed", || pipes_and_pidfds() == before);
        eventually("its cgroup is gone", || {
            engine.sweep(tokio::time::Instant::now());
            cgroup.as_ref().is_none_or(|cgroup| !cgroup.exists())
        });
        // The next server on these files knows how it ended.
        let copy = copy_of(home.state.path());
        let later = open(Settings { state: copy.path().to_owned(), ..home.settings() });
        let known = later.get(victim.id()).unwrap().snapshot().ending().unwrap().status;
        assert_eq!(known, Status::Lost(LostWhy::OwnerGone));
        close(later).await;
        others.tell("print more");
        others.tell("exit 3");
        for process in [&first, &last, &start(&others, "print more then exit 3").await] {
            let (ending, output) = finish(process).await;
            assert_eq!((&ending.status, &output[..]), (&Status::Exited(3), &b"more"[..]));
        }
        eventually("all slots are free", || registry.used().count() == 0);
        close(engine).await;
    }
}

fn pipes_and_pidfds() -> usize {
    let is_one = |target: &PathBuf| {
        let target = target.to_string_lossy();
        target.starts_with("pipe:") || target.contains("pidfd")
    };
    open_targets().iter().filter(|target| is_one(target)).count()
}

/// The folder of its cgroup, if it has its own.
fn cgroup_of(process: &Process) -> Option<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{}/cgroup", process.pid())).unwrap();
    let path = Path::new(text.lines().find_map(|line| line.strip_prefix("0::"))?);
    let (parent, name) = (path.parent()?.file_name()?, path.file_name()?);
    let folder = cgroup::own_folder().ok()?.join(parent).join(name);
    folder.exists().then_some(folder)
}
