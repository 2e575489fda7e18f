//! Waiting for the first of several conditions.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_testkit::{Anchor, as_many_as, free_port};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::{Server, env, held};

async fn wait(server: &Server, path: &str, conditions: Value) -> Value {
    let answer = server.connect().await.post(&format!("{path}/wait"), &conditions).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn a_pattern_matches_output_that_arrives_in_pieces() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    let waiting = wait(&server, &path, json!({ "pattern": "listening on \\d+", "exit": true }));
    let telling = async {
        for piece in [r"print booting\nlisten", r"print ing\x20on", r"print \x20"] {
            anchor.tell(piece);
            let total = wait(&server, &path, json!({ "silence_ms": 20 })).await;
            assert_eq!(total["wait"]["met"], "silence");
        }
        anchor.tell("print 8080");
    };
    let (answer, ()) = tokio::join!(waiting, telling);
    // An unfinished line is matched as it is: one digit is enough for \d+.
    let text = answer["wait"]["text"].as_str().unwrap();
    assert!("listening on 8080".starts_with(text) && text.len() > 13, "{answer}");
    assert_eq!(answer["wait"]["range"]["start"], 8);
    assert_eq!(answer["process"]["phase"], "running");
}

#[tokio::test]
async fn a_pattern_matches_earlier_output_but_not_before_the_cursor() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    anchor.tell(r"print ready\n");
    wait(&server, &path, json!({ "output_past": 5 })).await;
    let answer = wait(&server, &path, json!({ "pattern": "ready" })).await;
    assert_eq!(answer["wait"]["range"], json!({ "start": 0, "end": 5 }));
    let answer =
        wait(&server, &path, json!({ "pattern": "ready", "from": 1, "timeout_ms": 1 })).await;
    assert_eq!(answer["wait"], json!({ "met": "timeout" }));
}

#[tokio::test]
async fn output_past_is_met_by_the_next_byte() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    anchor.tell("print abc");
    let answer = wait(&server, &path, json!({ "output_past": 2 })).await;
    assert_eq!(answer["wait"], json!({ "met": "output_past", "total": 3 }));
    let answer = wait(&server, &path, json!({ "output_past": 3, "timeout_ms": 1 })).await;
    assert_eq!(answer["wait"], json!({ "met": "timeout" }));
}

#[tokio::test]
async fn a_wait_ends_when_nothing_more_can_happen() {
    let server = Server::start().await;
    let path = server.path_of("print x then exit 0", json!({})).await;
    for conditions in [
        json!({ "pattern": "never" }),
        json!({ "output_past": 1000 }),
        json!({ "silence_ms": 3_600_000 }),
        json!({ "timeout_ms": 3_600_000 }),
        json!({ "exit": true }),
    ] {
        let answer = wait(&server, &path, conditions).await;
        assert_eq!(answer["wait"], json!({ "met": "exit" }));
        assert_eq!(answer["process"]["ending"]["final_len"], 1);
    }
}

#[tokio::test]
async fn a_pattern_matches_late_output_unless_the_wait_is_also_for_the_exit() {
    let server = Server::start().await;
    let anchor = Arc::new(Anchor::listen());
    let path = server.path_of("leave-tail", json!({ "env": env(&anchor) })).await;
    let answer = wait(&server, &path, json!({ "pattern": "later", "exit": true })).await;
    assert_eq!(
        (&answer["wait"]["met"], &answer["process"]["log_open"]),
        (&json!("exit"), &json!(true))
    );
    held(&anchor, 1).await;
    let waiting = wait(&server, &path, json!({ "pattern": "later" }));
    let telling = async { anchor.tell("print later") };
    let (answer, ()) = tokio::join!(waiting, telling);
    assert_eq!(answer["wait"]["range"], json!({ "start": 4, "end": 9 }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_waiters_on_one_ending_are_all_answered() {
    // Both ends of each connection are here.
    let count = as_many_as(1000, 2);
    let server = Arc::new(Server::start().await);
    let (anchor, path) = server.told(json!({})).await;
    let mut waiters = JoinSet::new();
    for _ in 0..count {
        let mut client = server.connect().await;
        let path = format!("{path}/wait");
        waiters.spawn(async move { client.post(&path, &json!({ "exit": true })).await.json() });
    }
    // All seem to be waiting: none has an answer yet.
    let early = tokio::time::timeout(Duration::from_millis(50), waiters.join_next()).await;
    assert!(early.is_err());
    anchor.tell("exit 7");
    let answers = waiters.join_all().await;
    assert_eq!(answers.len() as u64, count);
    for answer in &answers {
        assert_eq!(answer["process"]["ending"]["status"], json!({ "kind": "exited", "code": 7 }));
        assert_eq!(answer, &answers[0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_counts_if_a_grandchild_in_another_session_listens_on_it() {
    let server = Server::start().await;
    let anchor = Arc::new(Anchor::listen());
    let actions =
        "background setsid-background hold end then sleep-ms 60000 end then sleep-ms 60000";
    let path = server.path_of(actions, json!({ "env": env(&anchor) })).await;
    held(&anchor, 1).await;
    let port = free_port();
    let waiting = wait(&server, &path, json!({ "port": port, "exit": true }));
    let telling = async {
        let early = wait(&server, &path, json!({ "port": port, "timeout_ms": 120 })).await;
        assert_eq!(early["wait"]["met"], "timeout");
        anchor.tell(&format!("listen {port}"));
    };
    let (answer, ()) = tokio::join!(waiting, telling);
    assert_eq!(answer["wait"], json!({ "met": "port", "port": port }));
}

#[tokio::test]
async fn a_port_of_another_program_does_not_count() {
    let server = Server::start().await;
    let (_anchor, path) = server.told(json!({})).await;
    let others = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = others.local_addr().unwrap().port();
    let answer = wait(&server, &path, json!({ "port": port, "timeout_ms": 120 })).await;
    assert_eq!(answer["wait"]["met"], "timeout");
}

#[tokio::test]
async fn a_wait_for_a_port_lasts_while_there_are_survivors() {
    let server = Server::start().await;
    let anchor = Arc::new(Anchor::listen());
    let survivor = "background close-stdout then close-stderr then hold end then exit 0";
    let path = server.path_of(survivor, json!({ "env": env(&anchor) })).await;
    held(&anchor, 1).await;
    let port = free_port();
    wait(&server, &path, json!({ "exit": true })).await;
    let waiting = wait(&server, &path, json!({ "port": port }));
    let (answer, ()) = tokio::join!(waiting, async { anchor.tell(&format!("listen {port}")) });
    assert_eq!(answer["wait"]["met"], "port");
    let closing = wait(&server, &path, json!({ "port": free_port() }));
    let (answer, ()) = tokio::join!(closing, async { anchor.tell("exit 0") });
    assert_eq!(answer["wait"]["met"], "exit");
}

/// Byte by byte, also within an escape sequence.
#[tokio::test]
async fn a_pattern_is_matched_with_what_a_person_sees_as_it_arrives() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    let log = b"10%\r\x1b[31mrea\x1b[0mdy\r\n";
    let conditions = json!({ "pattern": "^ready$", "exit": true });
    let waiting = wait(&server, &path, conditions.clone());
    let telling = async {
        for (nth, byte) in log.iter().enumerate() {
            anchor.tell(&format!("print \\x{byte:02x}"));
            wait(&server, &path, json!({ "output_past": nth })).await;
        }
    };
    let (answer, ()) = tokio::join!(waiting, telling);
    let met = json!({ "met": "pattern", "range": { "start": 9, "end": 18 }, "text": "ready" });
    assert_eq!(answer["wait"], met);
    assert_eq!(wait(&server, &path, conditions).await["wait"], met);
    let overwritten = wait(&server, &path, json!({ "pattern": "^10%$" })).await;
    assert_eq!(overwritten["wait"]["range"], json!({ "start": 0, "end": 3 }));
    let within = wait(&server, &path, json!({ "pattern": "^.*y", "from": 6 })).await;
    assert_eq!(within["wait"]["text"], "ready", "the cursor is in an escape sequence");
    anchor.tell("exit 0");
    let raw = wait(&server, &path, json!({ "pattern": "ready", "raw": true })).await;
    assert_eq!(raw["wait"]["met"], "exit");
}
