//! A policy outlives the leader, and is known to the next engine.

use lastbyte_engine::{
    Enforcement, EnforcementChoice, Engine, History, Launch, Network, Process, Sandbox, Settings,
    Signal, StopPolicy, Verb, confined,
};

use super::{fixture, folder, run, shell};
use crate::enforcements::enforcements_here;
use crate::fixture::{patiently, read};
use crate::unprivileged::as_nobody;

/// The log once it has this many lines, including late output.
async fn lines(process: &Process, count: usize) -> Vec<String> {
    let mut cursor = 0;
    loop {
        let snapshot = patiently("more output", process.until_past(cursor)).await;
        cursor = snapshot.extent.len;
        let text = String::from_utf8(read(process, &snapshot, 0..cursor)).unwrap();
        if text.lines().count() >= count && text.ends_with('\n') {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(snapshot.log_open, "{text}");
    }
}

/// In its own session, reparented and without its environment, after the leader's end. It has no
/// anchor, so it ends after some time.
const GRANDCHILD: &str = "mkfifo go; \
    env -i setsid timeout 60 sh -c 'echo $$; read x < go; ! echo x > ../there && echo refused' 2>&1 &";

#[tokio::test]
async fn a_grandchild_that_outlives_its_leader_is_still_confined() {
    for enforcement in enforcements_here() {
        let (fixture, folder) = (fixture(enforcement), folder());
        let process = fixture.start_launch(shell(GRANDCHILD, folder.path())).await;
        patiently("the leader ends", process.ended()).await;
        let pid: i32 = lines(&process, 1).await[0].parse().unwrap();
        assert!(confined(pid).unwrap(), "{enforcement:?}");
        std::fs::write(folder.path().join("go"), "now\n").unwrap();
        let lines = lines(&process, 3).await;
        assert_eq!(lines[2], "refused", "{enforcement:?}: {lines:?}");
    }
}

/// In its own session, reparented, in its own namespaces.
#[tokio::test]
async fn a_stop_ends_a_confined_tree() {
    if !as_nobody("sandbox::late::a_stop_ends_a_confined_tree") {
        return;
    }
    // Without a cgroup it is found only by its environment.
    let with_cookie = GRANDCHILD.replace("env -i ", "");
    for enforcement in enforcements_here() {
        let (fixture, folder) = (fixture(enforcement), folder());
        let process = fixture.start_launch(shell(&with_cookie, folder.path())).await;
        patiently("the leader ends", process.ended()).await;
        let pid: i32 = lines(&process, 1).await[0].parse().unwrap();
        let proof = patiently("it is stopped", process.stop_by(StopPolicy::KILL, Verb::Stop)).await;
        assert!(proof.left.is_empty(), "{enforcement:?}: {proof:?}");
        assert!(!lastbyte_testkit::is_alive(pid.unsigned_abs()), "{enforcement:?}: {proof:?}");
    }
}

#[tokio::test]
async fn only_confined_processes_are_seen_as_confined() {
    let (fixture, folder) = (fixture(Enforcement::Landlock), folder());
    let free = fixture.start_launch(Launch::argv(["sleep", "600"])).await;
    let sandbox = Sandbox::ReadOnly { network: Network::Off };
    let launch = Launch { sandbox, ..Launch::argv(["sleep", "600"]) };
    let held = fixture.start_launch(launch).await;
    assert!(!confined(std::process::id().cast_signed()).unwrap());
    assert!(!confined(free.pid()).unwrap());
    assert!(confined(held.pid()).unwrap());
    for process in [free, held] {
        process.signal(Signal::KILL).await.unwrap();
    }
    // Nothing is known about a process that is gone.
    confined(i32::MAX).unwrap_err();
    run(&fixture, shell("true", folder.path())).await;
}

#[tokio::test]
async fn the_next_engine_knows_the_policy() {
    let (state, folder) = (folder(), folder());
    let engine = || {
        let settings = Settings {
            history: History::Journal,
            enforcement: EnforcementChoice::Only(Enforcement::Landlock),
            ..Settings::new(state.path())
        };
        Engine::new(settings).unwrap()
    };
    let first = engine();
    let launch = shell("true", folder.path());
    let process = first.start(launch.clone()).await.unwrap().process;
    patiently("it ends", process.ended()).await;
    assert_eq!(process.spec().sandbox, launch.sandbox);
    let id = process.id();
    drop((process, first));
    let known = patiently("the journal is free", async {
        loop {
            match engine().get(id) {
                Some(process) => return process,
                None => tokio::task::yield_now().await,
            }
        }
    });
    assert_eq!(known.await.spec().sandbox, launch.sandbox);
}
