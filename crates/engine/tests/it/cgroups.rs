//! Cgroups are created, reused and removed. Users without cgroups get the same results by a scan.

use std::fs;
use std::path::{Path, PathBuf};

use lastbyte_engine::{
    Engine, Launch, Reach, ReachChoice, Settings, Status, StopPolicy, Survivors, Verb, Warning,
};
use lastbyte_sys::cgroup;
use lastbyte_sys::spawn::Mechanism;
use lastbyte_testkit::{
    children_of, eventually, has_cgroups, inside, is_alive, open_fds, open_targets,
};

use crate::fixture::{Fixture, finish, fixture_with_cgroups, patiently, sure_reaches};

/// The parent cgroups of this program. Each test is a program of its own.
fn parents() -> Vec<PathBuf> {
    let Ok(own) = cgroup::own_folder() else { return Vec::new() };
    let prefix = format!("lastbyte-{}-", std::process::id());
    folders(&own).into_iter().filter(|folder| name(folder).starts_with(&prefix)).collect()
}

fn cgroups() -> Vec<PathBuf> {
    parents().iter().flat_map(folders).collect()
}

fn folders(folder: &PathBuf) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).collect()
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap().to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_has_a_cgroup_if_this_user_can_create_one_and_is_scanned_otherwise() {
    let best = sure_reaches()[0];
    let fixture = Fixture::new();
    assert_eq!(fixture.engine.reach(), best);
    let process = fixture.start("hold").await;
    let pid = fixture.anchor.wait_for(1)[0];
    let cgroup = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let in_a_cgroup = cgroup.contains(&format!("/lastbyte-{}-", std::process::id()));
    assert_eq!(in_a_cgroup, best == Reach::Cgroup, "{cgroup}");
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    assert_eq!((proof.left, proof.reach), (vec![], best));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_tree_leaves_only_a_free_cgroup() {
    for reach in sure_reaches() {
        let fixture = Fixture::with(|settings| settings.reach = ReachChoice::Only(reach));
        finish(&fixture.start("exit 0").await).await;
        eventually("the first has settled", || children_of(std::process::id()).is_empty());
        let before = open_fds().len();
        for _ in 0..3 {
            let process = fixture.start("tree 30 mixed then hold").await;
            fixture.anchor.wait_for(31);
            let proof = patiently("stop", process.stop(Verb::Stop)).await;
            assert_eq!((proof.left, proof.reach), (vec![], reach));
            patiently("the end", process.ended()).await;
            // The anchor's ends of the helpers' connections are descriptors, too.
            fixture.anchor.wait_for_at_most(0);
        }
        eventually("no descriptor stays", || open_fds().len() <= before);
        assert_eq!(children_of(std::process::id()), Vec::<u32>::new(), "not even a zombie");
        assert!(cgroups().len() <= 2, "{:?}", cgroups());
        patiently("close", fixture.engine.close(Survivors::Stop)).await;
        assert_eq!(parents(), Vec::<PathBuf>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cgroup_costs_no_descriptor() {
    let Some(with) = fixture_with_cgroups() else { return };
    let without = Fixture::with(|settings| settings.reach = ReachChoice::Only(Reach::Scan));
    let is_of_a_command = |target: &PathBuf| {
        let target = target.to_string_lossy();
        ["pipe:", "pidfd", "/logs/"].iter().any(|part| target.contains(part))
    };
    let of_commands = || open_targets().into_iter().filter(is_of_a_command).count();
    let mut costs = Vec::new();
    for fixture in [&with, &without] {
        let at_rest = of_commands();
        finish(&fixture.start("exit 0").await).await;
        eventually("its own are closed", || of_commands() <= at_rest);
        let before = open_fds().len();
        for _ in 0..10 {
            fixture.start_launch(Launch::argv(["/bin/sleep", "60"])).await;
        }
        costs.push(open_fds().len().saturating_sub(before));
    }
    assert!(costs[0] <= 40 && costs[0] <= costs[1], "{costs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn successive_commands_reuse_one_cgroup() {
    let Some(fixture) = fixture_with_cgroups() else { return };
    for _ in 0..20 {
        finish(&fixture.start("exit 0").await).await;
        eventually("the cgroup is given back", || children_of(std::process::id()).is_empty());
    }
    // The next one can start before the owner of the last has finished.
    assert!(cgroups().len() <= 3, "{:?}", cgroups());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cgroup_with_a_survivor_is_not_reused() {
    let Some(fixture) = fixture_with_cgroups() else { return };
    let silent = "setsid-background close-stdout then close-stderr then hold end then exit 0";
    let process = fixture.start(silent).await;
    finish(&process).await;
    patiently("the log closes", process.wait_for(|_| false)).await;
    let survivor = fixture.anchor.wait_for(1)[0];
    let id = process.id();
    drop(process);
    fixture.engine.sweep(tokio::time::Instant::now());
    fixture.engine.forget(id).unwrap();
    for _ in 0..5 {
        let launch = Launch { stop: StopPolicy::KILL, ..Launch::argv(["/bin/sleep", "60"]) };
        let other = fixture.start_launch(launch).await;
        let proof = patiently("stop", other.stop(Verb::Stop)).await;
        assert_eq!(proof.signalled, [other.pid()], "{proof:?} {:?}", cgroups());
    }
    assert!(is_alive(survivor));
    // Although its process is forgotten, its cgroup is freed once it is gone.
    fixture.anchor.tell("exit 0");
    fixture.anchor.wait_for_at_most(0);
    eventually("it is gone", || !is_alive(survivor));
    patiently("close", fixture.engine.close(Survivors::Stop)).await;
    assert_eq!(parents(), Vec::<PathBuf>::new());
}

/// The kernel reports late that a cgroup is empty, and not at all once the cgroup is removed. If
/// the owner removed it at once, the stop would wait until its own time limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_stop_is_answered_as_soon_as_the_tree_is_gone() {
    for reach in sure_reaches() {
        let fixture = Fixture::with(|settings| settings.reach = ReachChoice::Only(reach));
        let begun = std::time::Instant::now();
        for _ in 0..20 {
            let launch = Launch { stop: StopPolicy::KILL, ..Launch::argv(["/bin/sleep", "60"]) };
            let process = fixture.start_launch(launch).await;
            assert_eq!(patiently("stop", process.stop(Verb::Stop)).await.left, []);
        }
        // That time limit is five seconds.
        let took = begun.elapsed();
        assert!(took < std::time::Duration::from_secs(5), "{took:?} by {reach:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_does_not_reach_the_next_user_of_its_cgroup() {
    let Some(fixture) = fixture_with_cgroups() else { return };
    let first = fixture.start("exit 0").await;
    finish(&first).await;
    eventually("its cgroup is free", || {
        children_of(std::process::id()).is_empty() && cgroups().len() == 1
    });
    fixture.engine.sweep(tokio::time::Instant::now());
    let second = fixture.start("hold").await;
    let pid = fixture.anchor.wait_for(1)[0];
    assert_eq!(cgroups().len(), 1, "it has the same cgroup");
    let proof = patiently("stop", first.stop_by(StopPolicy::KILL, Verb::Stop)).await;
    assert_eq!((proof.signalled, proof.left), (vec![], vec![]));
    assert_eq!(first.survivors().await, []);
    assert!(is_alive(pid));
    patiently("stop", second.stop(Verb::Stop)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_removes_its_cgroups_when_it_is_dropped() {
    let Some(Fixture { engine, anchor, state }) = fixture_with_cgroups() else { return };
    let launch = Launch::argv(["/bin/true"]);
    let process = engine.start(launch).await.unwrap().process;
    finish(&process).await;
    drop(engine);
    // The handle of an ended process keeps nothing.
    eventually("the parent is gone", || parents().is_empty());
    drop((process, anchor, state));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_removes_cgroups_of_dead_runs_and_keeps_those_of_live_ones() {
    let Some(live) = fixture_with_cgroups() else { return };
    let process = live.start("hold").await;
    live.anchor.wait_for(1);
    let own = cgroup::own_folder().unwrap();
    let dead = own.join(format!("lastbyte-0-{}", std::process::id()));
    fs::create_dir(&dead).unwrap();
    // Another test that starts at this moment may already be sweeping.
    _ = fs::create_dir(dead.join("0"));
    let before = (parents(), cgroups());
    let next = fixture_with_cgroups();
    assert!(!dead.exists());
    let (parents, cgroups) = (parents(), cgroups());
    assert!(before.0.iter().all(|parent| parents.contains(parent)), "{parents:?}");
    assert!(before.1.iter().all(|cgroup| cgroups.contains(cgroup)), "{cgroups:?}");
    assert_eq!(patiently("stop", process.stop(Verb::Stop)).await.left, []);
    drop(next);
}

#[tokio::test(flavor = "multi_thread")]
async fn requiring_a_cgroup_that_cannot_be_created_is_an_error() {
    let state = tempfile::tempdir().unwrap();
    let settings =
        |reach| Settings { mechanism: Mechanism::Clone, reach, ..Settings::new(state.path()) };
    let refused = Engine::new(settings(ReachChoice::Only(Reach::Cgroup))).map(drop);
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::Unsupported);
    let engine = Engine::new(settings(ReachChoice::Best)).unwrap();
    assert_eq!(engine.reach(), Reach::Scan);
}

/// As in most containers: the hierarchy exists but is read-only.
#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::disallowed_methods, reason = "a change to the test's own namespace")]
async fn without_cgroups_a_tree_is_scanned() {
    if !inside("cgroups::without_cgroups_a_tree_is_scanned", &["--mount"]) {
        return;
    }
    let own = cgroup::own_folder().unwrap();
    let mut mount = std::process::Command::new("mount");
    for options in ["bind", "remount,bind,ro"] {
        assert!(mount.args(["-o", options]).arg(&own).arg(&own).status().unwrap().success());
        mount = std::process::Command::new("mount");
    }
    let state = tempfile::tempdir().unwrap();
    let settings = |reach| Settings { reach, ..Settings::new(state.path()) };
    let refused = Engine::new(settings(ReachChoice::Only(Reach::Cgroup))).map(drop).unwrap_err();
    assert!(refused.to_string().starts_with("cannot create a cgroup below "), "{refused}");
    let engine = Engine::new(settings(ReachChoice::Best)).unwrap();
    assert_eq!(engine.reach(), Reach::Scan);
    let process = engine.start(Launch::argv(["/bin/sleep", "60"])).await.unwrap().process;
    let proof = patiently("stop", process.stop(Verb::Stop)).await;
    assert_eq!((proof.signalled, proof.left), (vec![process.pid()], vec![]));
}

/// The cgroup worked when the engine was created; a command can break it, or its parent.
#[tokio::test(flavor = "multi_thread")]
async fn if_a_cgroup_fails_later_there_is_a_warning_and_the_tree_is_scanned() {
    if !has_cgroups("cgroups") {
        return;
    }
    let fixture = Fixture::new();
    fs::write(parents()[0].join("cgroup.max.descendants"), "0").unwrap();
    let started = fixture.engine.start(Launch::shell("sleep 60 & exit 3")).await.unwrap();
    assert!(matches!(started.warnings[..], [Warning::NoCgroup(_)]), "{:?}", started.warnings);
    assert_eq!(finish(&started.process).await.0.status, Status::Exited(3));
    let proof = patiently("stop", started.process.stop(Verb::Stop)).await;
    assert_eq!((proof.signalled.len(), proof.left, proof.reach), (1, vec![], Reach::Scan));
}
