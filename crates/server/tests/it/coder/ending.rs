//! Waiting for the ending, and what counts as one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lastbyte_server::Limits;
use lastbyte_testkit::{Anchor, is_alive};
use serde_json::json;
use tokio::task::JoinSet;

use super::client::{As, child, output};
use crate::harness::{Server, env, held};

#[tokio::test]
async fn a_background_child_neither_delays_the_ending_nor_dies_with_it() {
    let server = Server::start().await;
    let anchor = Arc::new(Anchor::listen());
    let nobody = As::nobody();
    let command = format!("({}) & echo hi; exit 7", child("hold"));
    let began = Instant::now();
    let id = nobody.start(&server, &command, json!({ "env": env(&anchor) })).await;
    let ended = nobody.ended(&server, &id).await;
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let want = json!({ "output": "hi\n", "running": false, "exit_code": 7, "command": command });
    assert_eq!(ended, want);
    let pids = held(&anchor, 1).await;
    assert!(is_alive(pids[0]));
    let path = format!("/v1/processes/{id}/survivors");
    let survivors = server.connect().await.get(&path).await.json();
    assert_eq!(survivors[0]["pid"], pids[0]);
    anchor.tell("print late");
    assert_eq!(nobody.output(&server, &id).await, want, "late output changes nothing");
}

#[tokio::test]
async fn a_wait_that_times_out_says_that_the_process_runs() {
    let server =
        Server::with(Limits { coder_wait: Duration::from_millis(30), ..Limits::default() });
    let server = server.await;
    let (_anchor, path) = server.told(json!({})).await;
    let id = path.rsplit('/').next().unwrap();
    let answer = As::nobody().ended(&server, id).await;
    assert_eq!((&answer["running"], answer.get("exit_code")), (&json!(true), None));
}

#[tokio::test]
async fn output_does_not_wake_a_wait_for_the_ending() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    let id = path.rsplit('/').next().unwrap();
    let mut client = server.connect().await;
    let wait = format!("{}?wait=true", output(id));
    let waiting = client.get(&wait);
    tokio::pin!(waiting);
    anchor.tell("print one");
    let (native, seen) = (format!("{path}/wait"), json!({ "pattern": "one" }));
    let mut other = server.connect().await;
    tokio::select! {
        answer = &mut waiting => panic!("woken by output: {answer:?}"),
        _ = other.post(&native, &seen) => {}
    }
    anchor.tell("exit 3");
    let answer = waiting.await.json();
    assert_eq!((&answer["running"], &answer["exit_code"]), (&json!(false), &json!(3)));
}

#[tokio::test]
async fn a_waiter_that_disconnects_frees_its_slot_and_leaves_the_process_alone() {
    let server = Server::with(Limits { waits: 1, ..Limits::default() }).await;
    let (_anchor, path) = server.told(json!({})).await;
    let id = path.rsplit('/').next().unwrap();
    let wait = format!("{}?wait=true", output(id));
    let (mut one, mut other) =
        (server.connect_until_reset().await, server.connect_until_reset().await);
    let refused = tokio::select! {
        refused = one.get(&wait) => refused,
        refused = other.get(&wait) => refused,
    };
    assert_eq!(refused.status, 503, "{refused:?}");
    let detail = refused.json()["detail"].to_string();
    assert!(detail.contains("1 requests are waiting"), "{detail}");
    drop((one, other));
    let probe = json!({ "exit": true, "timeout_ms": 1 });
    while server.connect().await.post(&format!("{path}/wait"), &probe).await.status != 200 {}
    assert_eq!(As::nobody().output(&server, id).await["running"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_waiters_are_answered() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    let id = path.rsplit('/').next().unwrap();
    let wait = format!("{}?wait=true", output(id));
    let mut waiters = JoinSet::new();
    for _ in 0..100 {
        let (mut client, wait) = (server.connect().await, wait.clone());
        waiters.spawn(async move { client.get(&wait).await.json() });
    }
    anchor.tell("exit 9");
    for answer in waiters.join_all().await {
        assert_eq!(answer["exit_code"], 9);
    }
}
