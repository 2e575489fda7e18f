//! When descriptors run out: a timeout still fires, a stop does not lie, and no output is lost.

use std::fs::File;
use std::time::Duration;

use lastbyte_engine::{Kept, Launch, Status, StopPolicy, Timeouts, Verb};
use lastbyte_testkit::{eventually, is_alive};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::fixture::{Fixture, finish, patiently};
use crate::home::{Home, close, empty_files};

/// Takes all descriptors, and frees them when dropped.
pub struct Hog {
    files: Vec<File>,
    _few: Few,
}

impl Hog {
    fn take_all() -> Self {
        Self::take_all_of(256)
    }

    fn take_all_of(count: u64) -> Self {
        let few = Few::descriptors(count);
        let files = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        Self { files, _few: few }
    }

    /// Takes all but `free` of the `count` descriptors.
    pub fn take_all_but(free: usize, count: u64) -> Self {
        let mut hog = Self::take_all_of(count);
        hog.files.truncate(hog.files.len() - free);
        hog
    }
}

/// A low limit, until it is dropped.
pub struct Few {
    before: Rlimit,
}

impl Few {
    pub fn descriptors(count: u64) -> Self {
        let before = getrlimit(Resource::Nofile);
        let fewer = Rlimit { current: Some(count), maximum: before.maximum };
        setrlimit(Resource::Nofile, fewer).unwrap();
        Self { before }
    }
}

impl Drop for Few {
    fn drop(&mut self) {
        setrlimit(Resource::Nofile, self.before).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_kills_without_a_free_descriptor() {
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
async fn a_stop_that_cannot_look_claims_nothing() {
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
async fn output_is_kept_until_descriptors_are_free() {
    let fixture = Fixture::new();
    let process = fixture.start("join then hold").await;
    fixture.anchor.wait_for(1);
    let hog = Hog::take_all();
    fixture.anchor.tell("write-bytes 30000");
    // The command has written it, but it cannot be stored yet.
    fixture.anchor.tell("print end");
    tokio::task::yield_now().await;
    drop(hog);
    patiently("it is stored", process.until_past(30_002)).await;
    fixture.anchor.tell("exit 0");
    let (ending, bytes) = finish(&process).await;
    assert_eq!((&ending.kept, bytes.len()), (&Kept::Whole, 30_003));
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_low_limit_few_log_files_are_opened_ahead() {
    let home = Home::new();
    let few = Few::descriptors(128);
    let engine = home.open();
    drop(few);
    let logs = home.state.path().join("logs");
    let run = async |actions| {
        finish(&engine.start(home.launch(actions)).await.unwrap().process).await;
    };
    run("exit 0").await;
    eventually("two are made", || empty_files(&logs).len() == 2);
    let before = empty_files(&logs);
    // The process keeps its file, so another is created.
    run("write-bytes 5000").await;
    eventually("there is another", || {
        let files = empty_files(&logs);
        files.len() == 2 && files != before
    });
    close(engine).await;
}
