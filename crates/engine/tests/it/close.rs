//! Closing an engine: nothing new, nothing left.

use std::pin::Pin;
use std::sync::Arc;

use lastbyte_engine::{
    Cause, Environment, EnvironmentProvider, Launch, ProviderError, ReachChoice, StartError,
    StopPolicy, Survivors, Verb, survived,
};
use lastbyte_testkit::is_alive;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::fixture::{Fixture, finish, patiently, sure_reaches};

#[tokio::test(flavor = "multi_thread")]
async fn a_close_stops_running_processes_and_refuses_new_starts() {
    let fixture = Fixture::new();
    let one = fixture.start("hold").await;
    let two = fixture.start("background hold end then hold").await;
    fixture.anchor.wait_for(3);
    let report = patiently("close", fixture.engine.close(Survivors::Leave)).await;
    assert_eq!(report.stopped.len(), 2);
    assert!(report.stopped.iter().all(|(_, proof)| proof.left.is_empty()));
    for process in [&one, &two] {
        let (ending, _) = finish(process).await;
        assert_eq!(ending.cause, Cause::Stopped { verb: Verb::Close, escalated: false });
    }
    fixture.anchor.wait_for_at_most(0);
    let refused = fixture.engine.start(fixture.launch("exit 0")).await;
    assert_eq!(refused.map(|_| ()), Err(StartError::Closed));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_leaves_or_stops_survivors_as_the_caller_says() {
    for (survivors, lives) in [(Survivors::Leave, true), (Survivors::Stop, false)] {
        let fixture = Fixture::new();
        finish(&fixture.start("leave-silent-holder").await).await;
        let pids = fixture.anchor.wait_for(1);
        patiently("close", fixture.engine.close(survivors)).await;
        assert_eq!(is_alive(pids[0]), lives, "{survivors:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ended_processes_with_survivors_are_found() {
    let fixture = Fixture::new();
    let alone = fixture.start("exit 0").await;
    let outlived = fixture.start("setsid-background close-stdout then hold end then exit 0").await;
    finish(&alone).await;
    finish(&outlived).await;
    fixture.anchor.wait_for(1);
    let found = survived(vec![alone, outlived.clone()]).await;
    assert_eq!(found.iter().map(|process| process.id()).collect::<Vec<_>>(), [outlived.id()]);
    outlived.stop_by(StopPolicy::KILL, Verb::Close).await;
    assert!(survived(found).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_ended_processes_with_survivors_are_stopped() {
    for reach in sure_reaches() {
        let fixture = Fixture::with(|settings| settings.reach = ReachChoice::Only(reach));
        let mut survived = Vec::new();
        for number in 0..30 {
            let holds = number % 10 == 0;
            let actions = if holds { "setsid-background hold end then exit 0" } else { "exit 0" };
            let process = fixture.start(actions).await;
            finish(&process).await;
            survived.extend(holds.then(|| process.id()));
        }
        fixture.anchor.wait_for(3);
        let report = patiently("close", fixture.engine.close(Survivors::Stop)).await;
        let mut stopped: Vec<_> = report.stopped.iter().map(|(id, _)| *id).collect();
        stopped.sort();
        assert_eq!(stopped, survived, "{reach:?}");
        assert!(report.stopped.iter().all(|(_, proof)| proof.gone.len() == 1));
        fixture.anchor.wait_for_at_most(0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_races_with_the_close_leaves_nothing_behind() {
    let fixture = Fixture::new();
    let mut starts = JoinSet::new();
    for _ in 0..40 {
        let launch = Launch { stop: StopPolicy::KILL, ..fixture.launch("hold") };
        let engine = fixture.engine.clone();
        starts.spawn(async move { engine.start(launch).await });
    }
    tokio::task::yield_now().await;
    patiently("close", fixture.engine.close(Survivors::Stop)).await;
    for start in patiently("all are answered", starts.join_all()).await {
        match start {
            Ok(started) => assert!(started.process.snapshot().ending().is_some()),
            Err(error) => assert_eq!(error, StartError::Closed),
        }
    }
    fixture.anchor.wait_for_at_most(0);
    let own = std::process::id();
    let left: Vec<u32> = lastbyte_testkit::children_of(own);
    assert_eq!(left, Vec::<u32>::new(), "no child, not even a zombie");
}

/// Says that it was asked, then never answers.
#[derive(Debug, Default)]
struct NeverAnswers {
    asked: Notify,
}

impl EnvironmentProvider for NeverAnswers {
    fn environment<'a>(
        &'a self,
        _: &'a Environment,
    ) -> Pin<Box<dyn Future<Output = Result<Environment, ProviderError>> + Send + 'a>> {
        self.asked.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_hangs_does_not_hang_the_close() {
    let provider = Arc::new(NeverAnswers::default());
    let fixture = Fixture::with(|settings| settings.provider = Some(Arc::clone(&provider) as _));
    let engine = fixture.engine.clone();
    let launch = fixture.launch("exit 0");
    let hanging = tokio::spawn(async move { engine.start(launch).await.map(drop) });
    patiently("the start hangs", provider.asked.notified()).await;
    patiently("close", fixture.engine.close(Survivors::Stop)).await;
    hanging.abort();
}

/// The engine answers instead of waiting for a task of the runtime that is gone.
#[test]
fn an_engine_without_its_runtime_refuses_starts_and_does_not_hang() {
    let first = tokio::runtime::Runtime::new().unwrap();
    let fixture = first.block_on(async { Fixture::new() });
    drop(first);
    let second = tokio::runtime::Runtime::new().unwrap();
    second.block_on(async {
        let start = fixture.engine.start(fixture.launch("exit 0"));
        let error = patiently("an answer", start).await.expect_err("nobody delivers");
        assert!(matches!(error, StartError::Spawn(_)), "{error:?}");
        patiently("close", fixture.engine.close(Survivors::Stop)).await;
    });
}
