//! `GET /v1/events`: one ordered feed, resumable.

use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::harness::{Client, Server};

/// The feed as a client reads it.
pub(crate) struct Listener {
    body: Incoming,
    text: String,
    /// The id that the feed begins after, if it told one.
    place: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Told {
    id: String,
    name: String,
    pub(crate) data: Value,
}

impl Listener {
    pub(crate) async fn new(client: &mut Client, path: &str) -> Self {
        let answer = client.begin("GET", path, "".into()).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        let mut listener = Self { body: answer.into_body(), text: String::new(), place: None };
        // After the first message, every later event is in the feed.
        let greeting = listener.piece().await;
        listener.place = greeting.strip_prefix("id: ").map(str::to_owned);
        assert!(greeting == ":" || listener.place.is_some(), "{greeting:?}");
        listener
    }

    async fn piece(&mut self) -> String {
        loop {
            if let Some((piece, rest)) = self.text.split_once("\n\n") {
                let piece = piece.to_owned();
                self.text = rest.to_owned();
                return piece;
            }
            let frame = self.body.frame().await.unwrap().unwrap().into_data().unwrap();
            self.text.push_str(std::str::from_utf8(&frame).unwrap());
        }
    }

    pub(crate) async fn next(&mut self) -> Told {
        let piece = self.piece().await;
        let field = |name: &str| {
            let prefix = format!("{name}: ");
            let line = piece.lines().find_map(|line| line.strip_prefix(&prefix));
            line.unwrap_or_default().to_owned()
        };
        let data = serde_json::from_str(&field("data")).unwrap();
        Told { id: field("id"), name: field("event"), data }
    }

    pub(crate) async fn names(&mut self, count: usize) -> Vec<String> {
        let mut names = Vec::new();
        for _ in 0..count {
            names.push(self.next().await.name);
        }
        names
    }
}

#[tokio::test]
async fn events_of_a_process_come_in_order() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let mut listener = Listener::new(&mut client, "/v1/events").await;
    let path = server.path_of("print x then exit 3", json!({ "session": "s" })).await;
    let started = listener.next().await;
    assert_eq!((started.name.as_str(), &started.data["session"]), ("started", &json!("s")));
    assert!(path.ends_with(started.data["process"].as_str().unwrap()));
    assert_eq!(listener.next().await.name, "first_output");
    let ended = listener.next().await;
    assert_eq!(ended.data["event"]["ending"]["status"]["code"], 3);
    server.connect().await.send("DELETE", &path, "".into()).await;
    assert_eq!(listener.next().await.name, "forgotten");
}

#[tokio::test]
async fn a_feed_resumes_after_the_last_event() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let mut listener = Listener::new(&mut client, "/v1/events").await;
    server.start_child("print x then exit 0", json!({ "wait": { "exit": true } })).await;
    let first = listener.next().await;
    drop((listener, client));
    let mut client = server.connect().await;
    let resumed = format!("/v1/events?last_event_id={}", first.id);
    let mut listener = Listener::new(&mut client, &resumed).await;
    assert_eq!(listener.names(2).await, ["first_output", "ended"]);
}

#[tokio::test]
async fn a_feed_that_told_no_event_resumes_where_it_began() {
    let server = Server::start().await;
    server.start_child("exit 0", json!({ "wait": { "exit": true } })).await;
    let mut client = server.connect().await;
    let place = Listener::new(&mut client, "/v1/events").await.place.unwrap();
    drop(client);
    server.start_child("exit 0", json!({ "wait": { "exit": true } })).await;
    let mut client = server.connect().await;
    let resumed = format!("/v1/events?last_event_id={place}");
    let mut listener = Listener::new(&mut client, &resumed).await;
    assert_eq!(listener.place.as_ref(), Some(&place));
    assert_eq!(listener.names(2).await, ["started", "ended"]);
}

#[tokio::test]
async fn an_event_id_of_an_earlier_server_is_a_gap() {
    let server = Server::start().await;
    server.start_child("exit 0", json!({ "wait": { "exit": true } })).await;
    let mut client = server.connect().await;
    let mut listener = Listener::new(&mut client, "/v1/events?last_event_id=1-7").await;
    // Else a client that resumes here would not be told of the gap.
    assert_eq!(listener.place, None);
    assert_eq!(listener.names(3).await, ["gap", "started", "ended"]);
}

#[tokio::test]
async fn an_invalid_event_id_is_refused() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let mut listener = Listener::new(&mut client, "/v1/events").await;
    server.start_child("exit 0", json!({})).await;
    let (epoch, _) = listener.next().await.id.split_once('-').map(own).unwrap();
    for place in ["x".to_owned(), "1".to_owned(), format!("{epoch}-99999999")] {
        let path = format!("/v1/events?last_event_id={place}");
        let refused = server.connect().await.get(&path).await;
        assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"), "{place}");
    }
    let no_text = [("last-event-id", "é")];
    let refused = server.connect().await.begin_with("GET", "/v1/events", &no_text, "".into()).await;
    assert_eq!(refused.status(), 400);
}

fn own((epoch, number): (&str, &str)) -> (String, String) {
    (epoch.to_owned(), number.to_owned())
}

#[tokio::test]
async fn events_can_be_filtered_by_session() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let mut listener = Listener::new(&mut client, "/v1/events?session=b").await;
    for session in ["a", "b"] {
        let more = json!({ "session": session, "wait": { "exit": true } });
        server.start_child("exit 0", more).await;
    }
    for name in ["started", "ended"] {
        let told = listener.next().await;
        assert_eq!((told.name.as_str(), &told.data["session"]), (name, &json!("b")));
    }
}

#[tokio::test]
async fn a_timeout_event_comes_before_the_ending() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let mut listener = Listener::new(&mut client, "/v1/events").await;
    server.start_child("hold", json!({ "timeout_ms": 1 })).await;
    assert_eq!(listener.names(3).await, ["started", "timed_out", "ended"]);
}

#[tokio::test]
async fn a_timeout_that_does_not_stop_the_process_is_reported() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let mut listener = Listener::new(&mut client, "/v1/events").await;
    let more = json!({ "timeout_ms": 1, "on_timeout": "background" });
    let path = server.path_of("hold", more).await;
    assert_eq!(listener.names(2).await, ["started", "timed_out"]);
    let shown = server.connect().await.get(&path).await.json();
    assert_eq!(shown["phase"], "running");
    assert!(shown["timed_out_at_unix_ns"].as_u64() > shown["started_unix_ns"].as_u64(), "{shown}");
}
