//! When descriptors run out: a timeout still fires, a stop does not lie, output is not lost.

use std::fs::File;
use std::time::Duration;

use lastbyte_engine::{Kept, Launch, Status, StopPolicy, Timeouts, Verb};
use lastbyte_testkit::is_alive;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::fixture::{Fixture, finish, patiently};

/// Takes every descriptor there is, and gives them back when dropped.
struct Hog {
    _files: Vec<File>,
    before: Rlimit,
}

impl Hog {
    fn take_all() -> Self {
        let before = getrlimit(Resource::Nofile);
        let fewer = Rlimit { current: Some(256), maximum: before.maximum };
        setrlimit(Resource::Nofile, fewer).unwrap();
        let files = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        Self { _files: files, before }
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.before).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_still_kills() {
    let fixture = Fixture::new();
    let mut launch = fixture.launch("hold");
    launch.timeouts = Timeouts { wall: Some(Duration::from_millis(500)), idle: None };
    launch.stop = StopPolicy::KILL;
    let process = fixture.start_launch(launch).await;
    fixture.anchor.wait_for(1);
    let hog = Hog::take_all();
    let ending = patiently("it ends all the same", process.ended()).await;
    drop(hog);
    assert!(matches!(ending.status, Status::Signalled { .. }), "{ending:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_claims_nothing_that_it_could_not_see() {
    let fixture = Fixture::new();
    let launch = Launch { stop: StopPolicy::KILL, ..fixture.launch("hold") };
    let process = fixture.start_launch(launch).await;
    let pid = fixture.anchor.wait_for(1)[0];
    let hog = Hog::take_all();
    let proof = patiently("an answer", process.stop(Verb::Stop)).await;
    let still_there = is_alive(pid);
    assert!(!still_there || !proof.left.is_empty(), "alive, and the proof says {proof:?}");
    patiently("it ends in the end", process.ended()).await;
    drop(hog);
}

/// The bytes wait in the pipe until there is a descriptor for the log.
#[tokio::test(flavor = "multi_thread")]
async fn output_that_comes_meanwhile_is_kept() {
    let fixture = Fixture::new();
    let process = fixture.start("join then hold").await;
    fixture.anchor.wait_for(1);
    let hog = Hog::take_all();
    fixture.anchor.tell("write-bytes 30000");
    // The command has written it; nothing of it can be stored yet.
    fixture.anchor.tell("print end");
    tokio::task::yield_now().await;
    drop(hog);
    patiently("it is stored", process.until_past(30_002)).await;
    fixture.anchor.tell("exit 0");
    let (ending, bytes) = finish(&process).await;
    assert_eq!((&ending.kept, bytes.len()), (&Kept::Whole, 30_003));
}
