//! A start that is answered as failed has not run, however few descriptors there are.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::time::Duration;

use lastbyte_engine::{
    Engine, Key, Launch, Network, Refused, Sandbox, Status, Stdin, Streams, WindowSize,
};
use lastbyte_testkit::eventually;
use rustix::fs::inotify;
use tokio::task::JoinSet;
use tokio::time::interval;

use crate::fixture::{finish, patiently};
use crate::home::{Home, close};
use crate::shortage::{Few, Hog};

/// Programs for which the kernel counts how often each was executed. A command that is killed at
/// once leaves no other trace.
struct Watched {
    folder: tempfile::TempDir,
    events: OwnedFd,
}

impl Watched {
    fn programs(count: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
        let events = inotify::init(flags).unwrap();
        for number in 0..count {
            let program = folder.path().join(number.to_string());
            std::fs::copy("/bin/true", &program).unwrap();
            // The kernel merges equal events in a row, so another kind is put between them.
            let kinds = inotify::WatchFlags::OPEN | inotify::WatchFlags::CLOSE_NOWRITE;
            inotify::add_watch(&events, &program, kinds).unwrap();
        }
        Self { folder, events }
    }

    /// A start of one of them.
    fn launch(&self, number: usize, key: String) -> Launch {
        let program = self.folder.path().join(number.to_string());
        Launch { key: Some(Key(key)), ..Launch::argv([program]) }
    }

    /// How often any of them was executed since the last call.
    fn executed(&self) -> usize {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.events, &mut buffer);
        let events = std::iter::from_fn(|| events.next().ok().map(|event| event.events()));
        events.filter(|events| events.contains(inotify::ReadFlags::OPEN)).count()
    }
}

fn modes() -> [(Streams, Stdin); 6] {
    let pty = Streams::Pty(WindowSize { rows: 24, cols: 80 });
    [
        (Streams::Merged, Stdin::Closed),
        (Streams::Merged, Stdin::Open),
        (Streams::Split, Stdin::Closed),
        (Streams::Split, Stdin::Given(b"x".to_vec())),
        (pty, Stdin::Closed),
        (pty, Stdin::Open),
    ]
}

/// Tries every number of free descriptors, from none to more than any start needs.
async fn sweep(sandbox: Sandbox) {
    let home = Home::new();
    let watched = Watched::programs(1);
    // With so few it opens no files ahead, which it would close for a start.
    let few = Few::descriptors(63);
    let engine = home.open();
    drop(few);
    let launch = |key| Launch { sandbox: sandbox.clone(), ..watched.launch(0, key) };
    // What the first start creates for all others exists before descriptors run out.
    finish(&engine.start(launch("first".into())).await.unwrap().process).await;
    assert_eq!(watched.executed(), 1);
    let mut failed = 0;
    for (streams, stdin) in modes() {
        for (round, free) in (0..14).flat_map(|free| [free; 3]).enumerate() {
            let key = format!("{streams:?} {stdin:?} {round}: {free} free");
            let launch = Launch { streams, stdin: stdin.clone(), ..launch(key.clone()) };
            let hog = Hog::take_all_but(free, 256);
            let first = patiently("an answer", engine.start(launch.clone())).await;
            drop(hog);
            if let Err(error) = &first {
                failed += 1;
                let refused = error.refused();
                assert!(matches!(refused, Refused::Failed | Refused::Sandbox), "{error:?}");
                assert_eq!(watched.executed(), 0, "{key}: failed with {error:?}, and ran");
            }
            let again = engine.start(launch).await.unwrap();
            assert_eq!(again.attached, first.is_ok());
            finish(&again.process).await;
            assert_eq!(watched.executed(), 1, "{key}");
        }
    }
    assert!(failed > 0, "descriptors never ran out");
    close(engine).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_enough_descriptors_fails_before_the_command_runs() {
    sweep(Sandbox::FullAccess).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandboxed_start_without_enough_descriptors_fails_before_the_command_runs() {
    sweep(Sandbox::ReadOnly { network: Network::Off }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_can_use_the_descriptors_of_files_opened_ahead() {
    let few = Few::descriptors(1024);
    for (streams, _) in modes() {
        let home = Home::new();
        let engine = home.open();
        finish(&engine.start(home.launch("exit 0")).await.unwrap().process).await;
        eventually("files are made ahead", || {
            std::fs::read_dir(home.state.path().join("logs")).unwrap().count() == 16
        });
        let hog = Hog::take_all_but(0, 1024);
        let launch = Launch { streams, ..home.launch("exit 7") };
        let process = patiently("a start", engine.start(launch)).await.unwrap().process;
        drop(hog);
        assert_eq!(finish(&process).await.0.status, Status::Exited(7));
        close(engine).await;
    }
    drop(few);
}

/// Many starts at once, each repeated until it succeeds.
async fn burst(limit: u64, free: usize) {
    let (home, count) = (Home::new(), 60);
    let watched = Watched::programs(count);
    // An engine with a low limit keeps few descriptors for itself.
    let few = Few::descriptors(limit);
    let engine = home.open();
    let hog = Hog::take_all_but(free, limit);
    let mut starts = JoinSet::new();
    for number in 0..count {
        let (streams, _) = modes()[number % 6].clone();
        let launch = watched.launch(number, number.to_string());
        starts.spawn(until_started(engine.clone(), Launch { streams, ..launch }));
    }
    let failed: usize = patiently("all are there", starts.join_all()).await.into_iter().sum();
    drop((hog, few));
    assert_eq!(watched.executed(), count, "{failed} starts failed");
    close(engine).await;
}

/// How many starts failed before one succeeded.
async fn until_started(engine: Engine, launch: Launch) -> usize {
    let (mut failed, mut tries) = (0, interval(Duration::from_millis(20)));
    loop {
        tries.tick().await;
        match engine.start(launch.clone()).await {
            Ok(started) => {
                started.process.ended().await;
                return failed;
            }
            Err(_) => failed += 1,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_with_few_descriptors_runs_each_command_once() {
    for (limit, free) in [(64, 20), (1024, 20), (1024, 40)] {
        burst(limit, free).await;
    }
}
