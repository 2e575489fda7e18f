//! Simultaneous spawns do not leak descriptors into each other.

use lastbyte_engine::{Closing, Launch, Status};
use lastbyte_testkit::open_fds;
use tokio::task::JoinSet;

use crate::fixture::{Fixture, HOUR, drain, finish, patiently};

/// Full size is 16 × 1,500; the environment variable sets it.
fn runs_per_spawner() -> usize {
    std::env::var("LASTBYTE_TEST_SPAWNS").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

/// With quiet windows of an hour, the test hangs unless each drain ends with an end of file.
#[tokio::test(flavor = "multi_thread")]
async fn sixteen_spawners_never_hold_each_others_pipes() {
    let fixture = Fixture::new();
    let mut spawners = JoinSet::new();
    for _ in 0..16 {
        let engine = fixture.engine.clone();
        spawners.spawn(async move {
            for _ in 0..runs_per_spawner() {
                let mut launch = Launch::argv(["/bin/true"]);
                launch.drain = drain(HOUR, HOUR);
                let process = engine.start(launch).await.expect("it starts").process;
                let ending = patiently("an end of file", process.ended()).await;
                assert_eq!((ending.status, &ending.closing), (Status::Exited(0), &Closing::Eof));
            }
        });
    }
    spawners.join_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finished_process_leaves_no_descriptor_behind() {
    let fixture = Fixture::new();
    finish(&fixture.start("print x").await).await;
    let before = open_fds().len();
    for _ in 0..20 {
        patiently("the end", fixture.start("print x then eprint y").await.ended()).await;
    }
    until_no_more_are_open_than(before).await;
}

/// Logs that were read recently stay open, because a polling client reads them again.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_few_logs_stay_open_after_reads() {
    let fixture = Fixture::new();
    finish(&fixture.start("print x").await).await;
    let before = open_fds().len();
    for _ in 0..80 {
        finish(&fixture.start("print x then eprint y").await).await;
    }
    until_no_more_are_open_than(before + 32).await;
}

async fn until_no_more_are_open_than(most: usize) {
    patiently("owners close what they had", async {
        while open_fds().len() > most {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
