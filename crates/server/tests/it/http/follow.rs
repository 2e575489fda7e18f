//! `GET …/follow`: every byte once, in order, over however many connections.

pub(super) mod follower;
mod reconnect;

use lastbyte_testkit::pattern_bytes;
use serde_json::json;

use crate::harness::Server;
use follower::{Follower, Told, bytes};

#[tokio::test]
async fn output_comes_in_order_then_the_ending_then_the_stream_closes() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    let mut follower = Follower::new(&server, &path, "", None).await;
    for text in ["one", "two\\n"] {
        anchor.tell(&format!("print {text}"));
        let told = follower.next().await.unwrap();
        assert_eq!(
            (told.name.as_str(), bytes(&told)),
            ("output", text.replace("\\n", "\n").into())
        );
    }
    anchor.tell("exit 3");
    let ending = follower.next().await.unwrap();
    assert_eq!((ending.name.as_str(), ending.id.as_str()), ("ending", "7-ended"));
    assert_eq!(ending.data["status"], json!({ "kind": "exited", "code": 3 }));
    assert!(follower.next().await.is_none(), "an ending is the end");
}

#[tokio::test]
async fn text_ends_with_a_whole_character_and_other_bytes_are_unchanged() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    let mut follower = Follower::new(&server, &path, "", None).await;
    anchor.tell(r"print a\xe2\x82");
    let first = follower.next().await.unwrap();
    assert_eq!(first.data["content"], json!({ "text": "a" }));
    anchor.tell(r"print \xac\xffb\xe2");
    let rest = [follower.next().await.unwrap(), follower.next().await.unwrap()];
    assert_eq!(rest[0].data["content"], json!({ "text": "€" }));
    assert_eq!((rest[1].id.as_str(), bytes(&rest[1])), ("6", b"\xffb".to_vec()));
    anchor.tell("exit 0");
    let last = follower.next().await.unwrap();
    assert_eq!((last.id.as_str(), bytes(&last)), ("7", b"\xe2".to_vec()));
}

#[tokio::test]
async fn split_streams_are_named() {
    let server = Server::start().await;
    let path = server.path_of("print o then exit 0", json!({ "streams": "split" })).await;
    let told = Follower::new(&server, &path, "", None).await.next().await.unwrap();
    assert_eq!(told.data["stream"], "stdout");
    let path = server.path_of("eprint e then exit 0", json!({ "streams": "split" })).await;
    let told = Follower::new(&server, &path, "", None).await.next().await.unwrap();
    assert_eq!(told.data["stream"], "stderr");
}

#[tokio::test]
async fn late_output_is_marked_until_the_log_closes() {
    let server = Server::start().await;
    let (anchor, path) = holder(&server).await;
    let mut follower = Follower::new(&server, &path, "?late=true", None).await;
    assert_eq!(follower.next().await.unwrap().id, "5");
    assert_eq!(follower.next().await.unwrap().id, "5-ended");
    anchor.tell("print late");
    let late = follower.next().await.unwrap();
    assert_eq!((late.name.as_str(), late.id.as_str()), ("late", "9-ended"));
    assert_eq!(bytes(&late), b"late");
    drop(follower);
    let mut resumed = Follower::new(&server, &path, "?late=true", Some(&late.id)).await;
    anchor.tell("print r");
    let more = resumed.next().await.unwrap();
    assert_eq!((more.name.as_str(), more.id.as_str()), ("late", "10-ended"));
    anchor.tell("exit 0");
    assert!(resumed.next().await.is_none());
}

/// An ended process with a child that holds its output open.
async fn holder(server: &Server) -> (std::sync::Arc<lastbyte_testkit::Anchor>, String) {
    let anchor = std::sync::Arc::new(lastbyte_testkit::Anchor::listen());
    let more = json!({ "env": crate::harness::env(&anchor), "wait": { "exit": true } });
    let path = server.path_of("print early then leave-silent-holder", more).await;
    crate::harness::held(&anchor, 1).await;
    (anchor, path)
}

#[tokio::test]
async fn a_client_that_has_everything_gets_a_204() {
    let server = Server::start().await;
    let path = server.path_of("print x", json!({ "wait": { "exit": true } })).await;
    for (query, id, want) in [
        ("", "1-ended", 204),
        ("?late=true", "1-ended", 204),
        ("", "1", 200),
        ("", "2", 400),
        ("", "é", 400),
    ] {
        let path = format!("{path}/follow{query}");
        let headers = [("last-event-id", id)];
        let mut client = server.connect().await;
        let answer = client.begin_with("GET", &path, &headers, "".into()).await;
        assert_eq!(answer.status(), want, "{query} {id}");
    }
}

#[tokio::test]
async fn following_can_start_at_a_cursor() {
    let server = Server::start().await;
    let path = server.path_of("print abcdef", json!({ "wait": { "exit": true } })).await;
    for (query, want) in [("?from=2", "cdef"), ("?from=-1", "f"), ("?from=-100", "abcdef")] {
        let told = Follower::new(&server, &path, query, None).await.next().await.unwrap();
        assert_eq!(bytes(&told), want.as_bytes(), "{query}");
    }
    let refused = server.connect().await.get(&format!("{path}/follow?from=7")).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_dropped_before_a_slow_follower_reads_them_are_reported() {
    let server = Server::start().await;
    let length: u64 = 48 << 20;
    let (anchor, path) = server.told(json!({ "quota_bytes": 131_072 })).await;
    let mut follower = Follower::new(&server, &path, "", None).await;
    anchor.tell(&format!("write-bytes {length}"));
    let past = json!({ "output_past": length - 1 });
    server.connect().await.post(&format!("{path}/wait"), &past).await;
    anchor.tell("exit 0");
    let (mut at, mut dropped) = (0, 0);
    while let Some(told) = follower.next().await.filter(|told| told.name != "ending") {
        let Told { name, data, .. } = &told;
        assert_eq!(data["range"]["start"], at);
        let end = data["range"]["end"].as_u64().unwrap();
        match name.as_str() {
            "dropped" => dropped += end - at,
            _ => assert!(bytes(&told) == pattern_bytes(at..end), "other bytes at {at}"),
        }
        at = end;
    }
    assert_eq!(at, length);
    assert!(dropped > 0, "a follower that read nothing got all of it");
}
