//! A command that uses too much is stopped or refused, its ending names the limit, and others go on.

use std::time::Duration;

use lastbyte_engine::{
    CapReached, Caps, Cause, EnforcedBy, Launch, Process, Program, Reach, ReachChoice, Refused,
    Resource, ResourceError, Resources, Session, Signal, StartError, Status, Verb,
};
use lastbyte_testkit::testchild;

use crate::fixture::{Fixture, finish, finish_text, patiently, sure_reaches};

const MIB: u64 = 1 << 20;

fn limited(fixture: &Fixture, actions: &str, resources: Resources) -> Launch {
    Launch { resources, ..fixture.launch(actions) }
}

/// A fixture for each way in which this user can find a tree.
fn fixtures() -> impl Iterator<Item = Fixture> {
    let with = |reach| Fixture::with(|settings| settings.reach = ReachChoice::Only(reach));
    sure_reaches().into_iter().map(with)
}

async fn cause(process: &Process) -> (Cause, Status) {
    let (ending, _) = finish(process).await;
    (ending.cause, ending.status)
}

fn killed() -> Status {
    Status::Signalled { signal: Signal::KILL, core_dumped: false }
}

/// Every process of the tree is gone.
async fn nothing_is_left(process: &Process) {
    let proof = patiently("the rest of the tree ends", process.stop(Verb::Stop)).await;
    assert_eq!(proof.left, Vec::<i32>::new(), "{proof:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_that_takes_too_much_memory_is_killed_and_others_go_on() {
    for fixture in fixtures() {
        let other = fixture.start("cat").await;
        let resources = Resources { memory: Some(64 * MIB), ..Resources::default() };
        for actions in ["eat-memory", "background eat-memory end then hold", "eat-memory 1"] {
            let process = fixture.start_launch(limited(&fixture, actions, resources)).await;
            let (cause, status) = cause(&process).await;
            assert_eq!(
                cause,
                Cause::Limit { which: Resource::Memory, escalated: false },
                "{actions}"
            );
            assert_eq!(status, killed(), "{actions}");
            nothing_is_left(&process).await;
        }
        drop(other);
        let (status, text) = finish_text(&fixture.start("print more").await).await;
        assert_eq!((status, text.as_str()), (Status::Exited(0), "more"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_below_the_limit_is_no_reason_to_stop() {
    let fixture = Fixture::new();
    let resources = Resources { memory: Some(256 * MIB), pids: Some(100), ..Resources::default() };
    let process =
        fixture.start_launch(limited(&fixture, "sleep-ms 300 then exit 3", resources)).await;
    assert_eq!(cause(&process).await, (Cause::Own, Status::Exited(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_is_killed_when_it_passes_its_limit() {
    for fixture in fixtures() {
        let resources = Resources { pids: Some(20), ..Resources::default() };
        let process =
            fixture.start_launch(limited(&fixture, "fork-bomb 200 then hold", resources)).await;
        let (cause, status) = cause(&process).await;
        assert_eq!(cause, Cause::Limit { which: Resource::Pids, escalated: false });
        assert_eq!(status, killed());
        nothing_is_left(&process).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processor_time_is_limited_for_one_process_and_for_all_together() {
    let fixture = Fixture::new();
    let resources =
        Resources { cpu_time: Some(Duration::from_millis(500)), ..Resources::default() };
    // The kernel limits each process, and the leader does nothing.
    let together = "background spin end then background spin end then hold";
    for actions in ["spin", together] {
        let process = fixture.start_launch(limited(&fixture, actions, resources)).await;
        let (cause, _) = cause(&process).await;
        assert_eq!(cause, Cause::Limit { which: Resource::CpuTime, escalated: false }, "{actions}");
        nothing_is_left(&process).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_cannot_open_more_files_than_its_limit() {
    let fixture = Fixture::new();
    let resources = Resources { open_files: Some(17), ..Resources::default() };
    let process = fixture.start_launch(limited(&fixture, "open-files", resources)).await;
    let (status, text) = finish_text(&process).await;
    assert_eq!((status, text.as_str()), (Status::Exited(0), "17 Some(24)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_cannot_grow_past_its_limit_also_below_a_shell() {
    let fixture = Fixture::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let resources = Resources { file_size: Some(MIB), ..Resources::default() };
    let direct = limited(&fixture, &format!("grow-file {}", file.display()), resources);
    let text = format!("{} grow-file {}; exit $?", testchild().display(), file.display());
    let in_shell = Launch { program: Program::Shell(text.into()), ..direct.clone() };
    for launch in [direct, in_shell] {
        let process = fixture.start_launch(launch).await;
        let (cause, _) = cause(&process).await;
        assert_eq!(cause, Cause::Limit { which: Resource::FileSize, escalated: false });
        assert_eq!(std::fs::metadata(&file).unwrap().len(), MIB);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_tells_how_each_limit_is_enforced() {
    let fixture = Fixture::with(|settings| settings.reach = ReachChoice::Only(Reach::Scan));
    let resources = Resources {
        memory: Some(64 * MIB),
        pids: Some(9),
        open_files: Some(64),
        ..Resources::default()
    };
    let process = fixture.start_launch(limited(&fixture, "exit 0", resources)).await;
    let told = process.spec().resources.as_ref().unwrap();
    assert_eq!(told.limits, resources);
    let want = [
        (Resource::Memory, EnforcedBy::Sampling),
        (Resource::Pids, EnforcedBy::Sampling),
        (Resource::OpenFiles, EnforcedBy::Kernel),
    ];
    assert_eq!(told.by, want);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_enforced_is_not_started() {
    let fixture = Fixture::with(|settings| {
        settings.reach = ReachChoice::Only(Reach::Scan);
        settings.resources.caps.open_files = Some(100);
    });
    let refused = async |resources: Resources| {
        let error = fixture.engine.start(limited(&fixture, "exit 0", resources)).await.unwrap_err();
        let StartError::Resources(why) = &error else { panic!("{error}") };
        (error.refused(), *why)
    };
    let none = Resources::default();
    let cpus = Resources { milli_cpus: Some(1500), ..none };
    let strict = Resources { memory: Some(64 * MIB), strict: true, ..none };
    let above = Resources { open_files: Some(101), ..none };
    let too_small = Resources { memory: Some(MIB - 1), ..none };
    let (which, controller) = (Resource::Cpus, "cpu");
    let want = ResourceError::Unavailable { which, controller };
    assert_eq!(refused(cpus).await, (Refused::LimitUnavailable, want));
    let want = ResourceError::NotByKernel { which: Resource::Memory, controller: "memory" };
    assert_eq!(refused(strict).await, (Refused::LimitUnavailable, want));
    let want = ResourceError::AboveCap { which: Resource::OpenFiles, asked: 101, cap: 100 };
    assert_eq!(refused(above).await, (Refused::LimitAboveCap, want));
    assert_eq!(refused(too_small).await.0, Refused::Launch);
    // The cap is the limit of those that do not choose.
    let (_, text) = finish_text(&fixture.start("open-files").await).await;
    assert_eq!(text, "100 Some(24)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_past_a_cap_is_refused_by_its_name_until_others_have_ended() {
    let fixture = Fixture::with(|settings| {
        settings.caps = Caps { running: Some(3), running_per_session: Some(2), ..Caps::default() };
    });
    let session = |name: &str| Some(Session(name.into()));
    let launch = |name| Launch { session: session(name), ..fixture.launch("hold") };
    let start = |name| fixture.engine.start(launch(name));
    let first = start("a").await.unwrap().process;
    start("a").await.unwrap();
    let refused = start("a").await.unwrap_err();
    assert_eq!(refused, StartError::Cap(CapReached::RunningInSession(2)));
    start("b").await.unwrap();
    assert_eq!(start("c").await.unwrap_err(), StartError::Cap(CapReached::Running(3)));
    patiently("it stops", first.stop(Verb::Stop)).await;
    patiently("it ends", first.ended()).await;
    start("c").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_at_the_same_time_do_not_pass_a_cap_together() {
    let fixture = Fixture::with(|settings| settings.caps.running = Some(5));
    let starts = (0..20).map(|_| {
        tokio::spawn({
            let (engine, launch) = (fixture.engine.clone(), fixture.launch("hold"));
            async move { engine.start(launch).await.is_ok() }
        })
    });
    let mut started = 0;
    for start in starts.collect::<Vec<_>>() {
        started += usize::from(start.await.unwrap());
    }
    assert_eq!(started, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn output_that_is_kept_counts_towards_its_session_until_it_is_forgotten() {
    let fixture = Fixture::with(|settings| settings.caps.bytes_per_session = Some(MIB));
    let launch = |actions: &str, name: &str| Launch {
        session: Some(Session(name.into())),
        ..fixture.launch(actions)
    };
    let process = fixture.start_launch(launch("flood 1", "a")).await;
    patiently("it ends", process.ended()).await;
    let refused = fixture.engine.start(launch("exit 0", "a")).await.unwrap_err();
    assert_eq!(refused, StartError::Cap(CapReached::BytesInSession(MIB)));
    finish(&fixture.start_launch(launch("exit 0", "b")).await).await;
    patiently("its output closes", process.wait_for(|snapshot| !snapshot.log_open)).await;
    fixture.engine.forget(process.id()).unwrap();
    fixture.start_launch(launch("exit 0", "a")).await;
}
