//! `GET …/output/times` and `GET …/follow?times=true`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lastbyte_testkit::eventually;
use serde_json::{Value, json};

use super::follow::follower::{Follower, bytes};
use crate::harness::{Server, held};

const RESOLUTION: Duration = Duration::from_millis(100);

fn now_ns() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap()
}

/// Waits until a new byte would get a new stamp; returns the time.
async fn until_next_stamp() -> u64 {
    let then = SystemTime::now();
    let gone_on = move || SystemTime::now() > then + RESOLUTION;
    tokio::task::spawn_blocking(move || eventually("the clock goes on", gone_on)).await.unwrap();
    now_ns()
}

async fn past(server: &Server, path: &str, len: u64) {
    let wait = json!({ "output_past": len - 1 });
    server.connect().await.post(&format!("{path}/wait"), &wait).await;
}

/// A process that wrote `a`, and later `b`; the time in between, and how to end it.
async fn two_times(
    server: &Server,
    more: Value,
) -> (std::sync::Arc<lastbyte_testkit::Anchor>, String, u64) {
    let (anchor, path) = server.told(more).await;
    anchor.tell("print a");
    past(server, &path, 1).await;
    let between = until_next_stamp().await;
    anchor.tell("print b");
    past(server, &path, 2).await;
    (anchor, path, between)
}

async fn times(server: &Server, path: &str, query: &str) -> Value {
    let answer = server.connect().await.get(&format!("{path}/output/times{query}")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

fn offsets(answer: &Value) -> Vec<u64> {
    let stamps = answer["stamps"].as_array().unwrap().iter();
    stamps.map(|stamp| stamp["offset"].as_u64().unwrap()).collect()
}

#[tokio::test]
async fn each_byte_has_a_time_and_a_time_has_a_cursor() {
    let server = Server::start().await;
    let (_anchor, path, between) = two_times(&server, json!({})).await;
    let all = times(&server, &path, "").await;
    assert_eq!((&all["from"], &all["next"], offsets(&all)), (&json!(0), &json!(2), vec![0, 1]));
    assert_eq!((&all["resolution_ms"], &all["total"]), (&json!(100), &json!(2)));
    assert_eq!((&all["phase"], &all["log_open"]), (&json!("running"), &json!(true)));
    let at = |index: usize| all["stamps"][index]["at_unix_ns"].as_u64().unwrap();
    // Stamps have whole milliseconds.
    assert!(at(0) < between && between < at(1) + 1_000_000 && at(1) < now_ns(), "{all}");
    assert_eq!(all["stamps"][0].get("stream"), None, "they are not told apart");
    for (query, from, want) in [
        (format!("?since_unix_ns={between}"), 1, vec![1]),
        (format!("?since_unix_ns={between}&from=2"), 2, vec![]),
        (format!("?since_unix_ns={}", u64::MAX), 2, vec![]),
        ("?since_unix_ns=0".to_owned(), 0, vec![0, 1]),
        ("?from=1".to_owned(), 1, vec![1]),
        ("?to=1".to_owned(), 0, vec![0]),
        ("?from=7&to=3".to_owned(), 2, vec![]),
    ] {
        let told = times(&server, &path, &query).await;
        assert_eq!((&told["from"], offsets(&told)), (&json!(from), want), "{query}");
    }
}

#[tokio::test]
async fn an_answer_has_at_most_max_stamps_and_says_where_to_continue() {
    let server = Server::start().await;
    let actions = "print a then eprint b then print c then exit 0";
    let more = json!({ "streams": "split", "wait": { "exit": true } });
    let path = server.path_of(actions, more).await;
    // The streams are written one after the other, but may be read in another order.
    let (mut from, mut streams) = (0, Vec::new());
    while from < 3 {
        let told = times(&server, &path, &format!("?from={from}&max_stamps=1")).await;
        assert_eq!(offsets(&told), [from]);
        let next = told["next"].as_u64().unwrap();
        let stream = told["stamps"][0]["stream"].as_str().unwrap().to_owned();
        streams.extend(vec![stream; (next - from) as usize]);
        from = next;
    }
    streams.sort();
    assert_eq!(streams, ["stderr", "stdout", "stdout"]);
    for query in ["max_stamps=0", "max_stamps=10001", "from=-1", "since=0"] {
        let answer = server.connect().await.get(&format!("{path}/output/times?{query}")).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "invalid_request"), "{query}");
    }
}

#[tokio::test]
async fn times_of_late_output_are_sent_on_request() {
    let server = Server::start().await;
    let anchor = std::sync::Arc::new(lastbyte_testkit::Anchor::listen());
    let more = json!({ "env": crate::harness::env(&anchor), "wait": { "exit": true } });
    let path = server.path_of("print early then leave-silent-holder", more).await;
    held(&anchor, 1).await;
    let late = until_next_stamp().await;
    anchor.tell("print late");
    past(&server, &path, 9).await;
    let proper = times(&server, &path, &format!("?since_unix_ns={late}")).await;
    assert_eq!((&proper["from"], offsets(&proper)), (&json!(5), vec![]));
    let all = times(&server, &path, &format!("?since_unix_ns={late}&late=true")).await;
    assert_eq!((&all["next"], offsets(&all)), (&json!(9), vec![5]));
}

#[tokio::test]
async fn a_follower_gets_the_time_of_each_piece() {
    let server = Server::start().await;
    for streams in ["merged", "split"] {
        let (anchor, path, between) = two_times(&server, json!({ "streams": streams })).await;
        let mut follower = Follower::new(&server, &path, "?times=true", None).await;
        let told = [follower.next().await.unwrap(), follower.next().await.unwrap()];
        let all = times(&server, &path, "").await;
        for (index, text) in [b"a", b"b"].iter().enumerate() {
            assert_eq!(
                (bytes(&told[index]), told[index].id.as_str()),
                (text.to_vec(), ["1", "2"][index])
            );
            assert_eq!(told[index].data["at_unix_ns"], all["stamps"][index]["at_unix_ns"]);
            assert_eq!(told[index].data.get("stream"), all["stamps"][index].get("stream"));
        }
        assert!(told[0].data["at_unix_ns"].as_u64().unwrap() < between);
        anchor.tell("print c");
        assert_eq!(bytes(&follower.next().await.unwrap()), b"c");
        anchor.tell("exit 0");
        assert_eq!(follower.next().await.unwrap().name, "ending");
        let plain = Follower::new(&server, &path, "", None).await.next().await.unwrap();
        assert_eq!((bytes(&plain), plain.data.get("at_unix_ns")), (b"abc".to_vec(), None));
    }
}

/// A character whose bytes arrived at different times is sent in parts, and no byte is lost.
#[tokio::test]
async fn a_piece_ends_where_the_time_changes() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    anchor.tell(r"print \xc3");
    past(&server, &path, 1).await;
    until_next_stamp().await;
    anchor.tell(r"print \xa9");
    past(&server, &path, 2).await;
    anchor.tell("exit 0");
    let mut follower = Follower::new(&server, &path, "?times=true", None).await;
    assert_eq!(bytes(&follower.next().await.unwrap()), b"\xc3");
    assert_eq!(bytes(&follower.next().await.unwrap()), b"\xa9");
    let plain = Follower::new(&server, &path, "", None).await.next().await.unwrap();
    assert_eq!(plain.data["content"], json!({ "text": "é" }));
}
