//! Listing and forgetting.

use std::time::Duration;

use lastbyte_engine::{
    Filter, ForgetError, Id, Key, Launch, Name, Page, PhaseKind, Retention, Session, Verb,
};
use lastbyte_testkit::eventually;

use crate::fixture::{Fixture, finish, patiently};

fn ids(page: &Page) -> Vec<Id> {
    page.processes.iter().map(|(process, _)| process.id()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_has_pages_newest_first() {
    let fixture = Fixture::new();
    let mut started = Vec::new();
    for _ in 0..5 {
        started.insert(0, fixture.start("exit 0").await.id());
    }
    let all = Filter::default();
    let first = fixture.engine.list(&all, None, 2);
    assert_eq!((ids(&first), first.next), (started[..2].to_vec(), Some(started[1])));
    let second = fixture.engine.list(&all, first.next, 2);
    assert_eq!((ids(&second), second.next), (started[2..4].to_vec(), Some(started[3])));
    let last = fixture.engine.list(&all, second.next, 2);
    assert_eq!((ids(&last), last.next), (started[4..].to_vec(), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn running_processes_are_listed_before_ended_ones() {
    let fixture = Fixture::new();
    let mut started = Vec::new();
    for actions in ["hold", "exit 0", "hold", "exit 0", "exit 0"] {
        let process = fixture.start(actions).await;
        if actions != "hold" {
            finish(&process).await;
        }
        started.push(process.id());
    }
    let first = |session: Option<&Session>, most: usize| -> Vec<Id> {
        let listed = fixture.engine.unended_first(session, most);
        listed.iter().map(|(process, _)| process.id()).collect()
    };
    let want = [2, 0, 4, 3, 1].map(|index: usize| started[index]);
    for most in 0..=6 {
        assert_eq!(first(None, most), want[..most.min(5)], "at most {most}");
    }
    assert_eq!(first(Some(&Session("other".into())), 6), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_can_be_filtered_by_session_phase_and_labels() {
    let fixture = Fixture::new();
    let launch = |actions: &str, session: &str, label: &str| Launch {
        session: Some(Session(session.into())),
        labels: [("l".to_owned(), label.to_owned())].into(),
        ..fixture.launch(actions)
    };
    let a = fixture.start_launch(launch("exit 0", "s", "1")).await;
    let b = fixture.start_launch(launch("hold", "s", "2")).await;
    let c = fixture.start_launch(launch("hold", "t", "1")).await;
    finish(&a).await;
    let check = |filter: Filter, want: &[Id]| {
        assert_eq!(ids(&fixture.engine.list(&filter, None, 10)), want, "{filter:?}");
    };
    let session = Some(Session("s".into()));
    check(Filter { session: session.clone(), ..Filter::default() }, &[b.id(), a.id()]);
    check(Filter { phase: Some(PhaseKind::Running), ..Filter::default() }, &[c.id(), b.id()]);
    check(Filter { phase: Some(PhaseKind::Ended), session, ..Filter::default() }, &[a.id()]);
    let label = Some(("l".into(), "1".into()));
    check(Filter { label, ..Filter::default() }, &[c.id(), a.id()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_can_be_listed_and_a_stopped_process_has_not() {
    let fixture = Fixture::new();
    let mut timed_out = fixture.launch("hold");
    timed_out.timeouts.wall = Some(Duration::from_millis(1));
    let timed_out = fixture.start_launch(timed_out).await;
    let exited = fixture.start("exit 3").await;
    let succeeded = fixture.start("exit 0").await;
    let killed = fixture.start("kill-self 9").await;
    let stopped = fixture.start("hold").await;
    stopped.stop(Verb::Stop).await;
    let _running = fixture.start("hold").await;
    for process in [&timed_out, &exited, &succeeded, &killed, &stopped] {
        finish(process).await;
    }
    let failed = Filter { failed: Some(true), ..Filter::default() };
    let listed = ids(&fixture.engine.list(&failed, None, 10));
    assert_eq!(listed, [killed.id(), exited.id(), timed_out.id()]);
    let others = Filter { failed: Some(false), ..Filter::default() };
    assert_eq!(fixture.engine.list(&others, None, 10).processes.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_can_be_filtered_by_name() {
    let fixture = Fixture::new();
    let web = || Launch { name: Some(Name("web".into())), ..fixture.launch("exit 0") };
    let first = fixture.start_launch(web()).await;
    finish(&first).await;
    let second = fixture.start_launch(web()).await;
    fixture.start("exit 0").await;
    let named = Filter { name: Some(Name("web".into())), ..Filter::default() };
    assert_eq!(ids(&fixture.engine.list(&named, None, 10)), [second.id(), first.id()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_ended_processes_with_a_closed_log_can_be_forgotten() {
    let fixture = Fixture::new();
    let running = fixture.start("hold").await;
    let held = fixture.start("leave-silent-holder").await;
    finish(&held).await;
    let forget = |id| fixture.engine.forget(id);
    assert!(matches!(forget(running.id()), Err(ForgetError::NotEnded { .. })));
    assert!(matches!(forget(held.id()), Err(ForgetError::Held { .. })));
    let before = fixture.files();
    let ended = fixture.start("write-bytes 5000").await;
    finish(&ended).await;
    assert_eq!(fixture.files(), before + 1);
    forget(ended.id()).unwrap();
    assert_eq!(fixture.files(), before);
    assert!(fixture.engine.get(ended.id()).is_none());
    assert!(matches!(forget(ended.id()), Err(ForgetError::NotFound { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_forgets_expired_processes_unless_their_log_is_held_open() {
    let fixture = Fixture::with(|settings| {
        settings.retention =
            Retention { at_most: Duration::from_secs(100), ..Retention::default() };
    });
    let ended = fixture.start("print x").await;
    finish(&ended).await;
    patiently("closed", ended.wait_for(|_| false)).await;
    let held = fixture.start("leave-silent-holder").await;
    finish(&held).await;
    fixture.engine.sweep(tokio::time::Instant::now() + Duration::from_secs(99));
    assert!(fixture.engine.get(ended.id()).is_some());
    fixture.engine.sweep(tokio::time::Instant::now() + Duration::from_secs(101));
    assert!(fixture.engine.get(ended.id()).is_none());
    assert!(fixture.engine.get(held.id()).is_some());
}

/// A key lives as long as its process: past the limit, the same key starts another one.
#[tokio::test(flavor = "multi_thread")]
async fn past_the_total_limit_the_oldest_are_forgotten_with_their_keys() {
    let fixture = Fixture::with(|settings| {
        settings.retention = Retention { in_all: 3, ..Retention::default() };
    });
    let held = fixture.start("hold").await;
    fixture.anchor.wait_for(1);
    let mut ended = Vec::new();
    for number in 0..5 {
        let key = Some(Key(format!("key-{number}")));
        let process = fixture.start_launch(Launch { key, ..fixture.launch("exit 0") }).await;
        finish(&process).await;
        ended.push(process.id());
    }
    eventually("the logs are closed and the oldest gone", || {
        fixture.engine.sweep(tokio::time::Instant::now());
        ended.iter().filter(|id| fixture.engine.get(**id).is_some()).count() == 3
    });
    assert!(ended[2..].iter().all(|id| fixture.engine.get(*id).is_some()), "the newest stay");
    assert!(fixture.engine.get(held.id()).is_some(), "what runs is not counted");
    for (number, attached) in [(0, false), (4, true)] {
        let key = Some(Key(format!("key-{number}")));
        let launch = Launch { key, ..fixture.launch("exit 0") };
        assert_eq!(fixture.engine.start(launch).await.unwrap().attached, attached);
    }
}
