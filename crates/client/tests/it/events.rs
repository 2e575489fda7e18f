use std::time::Duration;

use lastbyte_client::wire::{Event, EventKind};
use lastbyte_client::{ClientError, News, Problem};

use crate::server::{Server, answer, stream};

fn message(number: u32, kind: &str) -> String {
    let event = format!(r#"{{"process":"p","at_unix_ns":{number},"event":{{"kind":"{kind}"}}}}"#);
    format!("id: 5-{number}\nevent: {kind}\ndata: {event}\n\n")
}

fn event(number: u64, kind: EventKind) -> News {
    let labels = std::collections::BTreeMap::new();
    let event = Event {
        process: "p".into(),
        session: None,
        name: None,
        labels,
        at_unix_ns: number,
        event: kind,
        command: None,
        shell: None,
    };
    News::Event { id: format!("5-{number}"), event: Box::new(event) }
}

#[tokio::test]
async fn a_broken_feed_continues_after_the_last_event() {
    let first = format!(": hello\n\n{}{}", message(1, "started"), &message(2, "forgotten")[..20]);
    let second = format!("event: gap\ndata: {{}}\n\n{}", message(9, "forgotten"));
    let server = Server::start(vec![vec![stream(&first)], vec![stream(&second)]]);
    let mut events = server.client().events(Some("a b")).await.unwrap();
    assert_eq!(events.next().await.unwrap(), event(1, EventKind::Started));
    assert_eq!(events.next().await.unwrap(), News::Gap);
    assert_eq!(events.next().await.unwrap(), event(9, EventKind::Forgotten));
    let heard = server.heard();
    assert!(heard[0].starts_with("GET /v1/events?session=a%20b "), "{heard:?}");
    assert!(!heard[0].contains("last-event-id"), "{heard:?}");
    assert!(heard[2].contains("\r\nlast-event-id: 5-1\r\n"), "{heard:?}");
}

#[tokio::test]
async fn a_feed_that_breaks_before_its_first_event_continues_where_it_began() {
    let second = format!("id: 5-3\n\n{}", message(4, "started"));
    let third = message(5, "forgotten");
    let answers = ["id: 5-3\n\n", &second, &third].map(|text| vec![stream(text)]);
    let server = Server::start(answers.to_vec());
    let mut events = server.client().events(None).await.unwrap();
    assert_eq!(events.next().await.unwrap(), event(4, EventKind::Started));
    assert_eq!(events.next().await.unwrap(), event(5, EventKind::Forgotten));
    // Not at the place again, which came before the event.
    let heard = server.heard();
    assert!(heard[2].contains("\r\nlast-event-id: 5-3\r\n"), "{heard:?}");
    assert!(heard[4].contains("\r\nlast-event-id: 5-4\r\n"), "{heard:?}");
}

#[tokio::test]
async fn a_feed_that_breaks_before_its_first_event_has_a_gap_event() {
    let server =
        Server::start(vec![vec![stream(": hello\n\n")], vec![stream(&message(3, "started"))]]);
    let mut events = server.client().events(None).await.unwrap();
    assert_eq!(events.next().await.unwrap(), News::Gap);
    assert_eq!(events.next().await.unwrap(), event(3, EventKind::Started));
}

#[tokio::test]
async fn reconnecting_ends_if_the_server_ends_every_feed_at_once() {
    let server = Server::start(vec![vec![stream("")]; 1000]);
    let client = server.client().patience(Duration::from_millis(100));
    let mut events = client.events(None).await.unwrap();
    assert_eq!(events.next().await.unwrap(), News::Gap);
    let error = loop {
        if let Err(error) = events.next().await {
            break error;
        }
    };
    assert!(server.heard().len() > 4, "{:?}", server.heard());
    assert!(matches!(error, ClientError::Protocol { source: Problem::Ended, .. }), "{error:?}");
}

#[tokio::test]
async fn a_refused_feed_says_why() {
    let body = r#"{"error":{"code":"too_many_waits","message":"64 are waiting"}}"#;
    let server = Server::start(vec![vec![answer(503, "", body)]]);
    let error = server.client().events(None).await.unwrap_err();
    assert!(matches!(&error, ClientError::Refused(_)), "{error:?}");
    assert_eq!(error.to_string(), "64 are waiting");
}
