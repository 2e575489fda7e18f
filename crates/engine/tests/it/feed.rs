//! The feed: the events of all processes, in one order, each once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_engine::{
    Cause, Event, EventKind, Feed, Id, Launch, Session, StopPolicy, Timeout, Timeouts, Touches,
};
use tokio::task::JoinSet;

use crate::fixture::{Fixture, finish, patiently};

/// The kinds of events, as words that compare.
fn word(event: &Event) -> &'static str {
    match event.kind {
        EventKind::Started(_) => "started",
        EventKind::FirstOutput => "first output",
        EventKind::TimedOut { .. } => "timed out",
        EventKind::Ended(..) => "ended",
        EventKind::WorkspaceTouched(_) => "touched",
        EventKind::Forgotten => "forgotten",
    }
}

fn words(feed: &Feed) -> Vec<&'static str> {
    feed.since(0, usize::MAX).events.iter().map(|event| word(event)).collect()
}

fn touches() -> Touches {
    Touches { sessions: vec![Session("c".into())], paths: vec![PathBuf::from("/w")] }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_events_of_a_process_come_in_order_with_their_details() {
    let fixture = Fixture::new();
    let feed = fixture.engine.feed();
    let launch = Launch {
        session: Some(Session("s".into())),
        labels: [("l".to_owned(), "v".to_owned())].into(),
        timeouts: Timeouts { wall: None, idle: Some(Duration::from_secs(1)) },
        stop: StopPolicy::KILL,
        touches: Some(touches()),
        ..fixture.launch("print x then hold")
    };
    let process = fixture.start_launch(launch).await;
    let (ending, _) = finish(&process).await;
    patiently("closed", process.wait_for(|_| false)).await;
    fixture.engine.forget(process.id()).unwrap();

    let all = ["started", "first output", "timed out", "ended", "touched", "forgotten"];
    assert_eq!(words(&feed), all);
    let batch = feed.since(0, 100);
    assert_eq!((batch.newest, batch.gap), (6, false));
    for (event, number) in batch.events.iter().zip(1..) {
        assert_eq!((event.number, event.process.id), (number, process.id()));
        assert_eq!(event.process.session, Some(Session("s".into())));
        assert_eq!(event.process.labels["l"], "v");
    }
    assert_eq!(ending.cause, Cause::TimedOut { which: Timeout::Idle, escalated: false });
    assert_eq!(batch.events[2].kind, EventKind::TimedOut { which: Timeout::Idle });
    assert_eq!(batch.events[3].kind, EventKind::Ended(Arc::clone(process.spec()), ending));
    assert_eq!(batch.events[4].kind, EventKind::WorkspaceTouched(Box::new(touches())));
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_event_for_missing_output_or_a_failed_start() {
    let fixture = Fixture::new();
    let broken = Launch { cwd: Some("/no/such/folder".into()), ..fixture.launch("exit 0") };
    fixture.engine.start(broken).await.expect_err("no such folder");
    finish(&fixture.start("exit 0").await).await;
    assert_eq!(words(&fixture.engine.feed()), ["started", "ended"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_event_says_is_visible_when_it_is_read() {
    let fixture = Fixture::new();
    let (engine, feed) = (fixture.engine.clone(), fixture.engine.feed());
    let reader = tokio::spawn(async move {
        let (mut seen, mut ended) = (0, 0);
        while ended < 100 {
            patiently("an event", feed.past(seen)).await;
            for event in feed.since(seen, 7).events {
                seen = event.number;
                let process = engine.get(event.process.id).expect("told of, so it is there");
                match &event.kind {
                    EventKind::FirstOutput => assert!(process.snapshot().extent.len > 0),
                    EventKind::Ended(_, ending) => {
                        assert_eq!(process.snapshot().ending(), Some(ending));
                        ended += 1;
                    }
                    _ => {}
                }
            }
        }
    });
    let mut starts = JoinSet::new();
    for _ in 0..100 {
        let (engine, launch) = (fixture.engine.clone(), fixture.launch("print x"));
        starts.spawn(async move { engine.start(launch).await.expect("it starts").process });
    }
    starts.join_all().await;
    reader.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_order_of_events_holds_under_load() {
    let fixture = Fixture::new();
    let mut lives = JoinSet::new();
    for _ in 0..100 {
        let launch = Launch { touches: Some(touches()), ..fixture.launch("print x") };
        let engine = fixture.engine.clone();
        lives.spawn(async move {
            let process = engine.start(launch).await.expect("it starts").process;
            // As soon as possible: `forgotten` must not come before `ended`.
            process.wait_for(|_| false).await;
            engine.forget(process.id()).unwrap();
        });
    }
    patiently("all are forgotten", lives.join_all()).await;
    let batch = fixture.engine.feed().since(0, usize::MAX);
    let mut by_id: BTreeMap<Id, Vec<&str>> = BTreeMap::new();
    for event in &batch.events {
        by_id.entry(event.process.id).or_default().push(word(event));
    }
    assert_eq!(by_id.len(), 100);
    let life = ["started", "first output", "ended", "touched", "forgotten"];
    assert!(by_id.values().all(|words| *words == life), "{by_id:?}");
    let numbers: Vec<u64> = batch.events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, (1..=500).collect::<Vec<_>>());
}

#[test]
fn a_process_whose_owner_is_gone_has_an_ended_event() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (fixture, process) = runtime.block_on(async {
        let fixture = Fixture::new();
        let process = fixture.start("hold").await;
        (fixture, process)
    });
    runtime.shutdown_timeout(Duration::from_secs(10));
    let ending = Arc::clone(process.snapshot().ending().expect("lost"));
    let batch = fixture.engine.feed().since(1, 10);
    assert_eq!(batch.events[0].kind, EventKind::Ended(Arc::clone(process.spec()), ending));
    assert_eq!(batch.newest, 2);
}
