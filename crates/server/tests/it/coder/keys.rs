//! A start that can be repeated: `idempotency_key`, which belongs to its chat.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_server::{EnvHook, Limits};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::{As, START};
use crate::harness::{Answer, Server};

const A: &str = "0a1b2c3d-0000-4000-8000-00000000000a";
const B: &str = "0a1b2c3d-0000-4000-8000-00000000000b";

async fn start(chat: &As, server: &Server, request: &Value) -> Answer {
    chat.post(server, START, &request.to_string()).await
}

/// Checks the members of an answer and their order; returns the id and the time of the start.
#[track_caller]
fn check_answer(answer: &Answer, attached: bool, key: &str) -> (String, i64) {
    assert_eq!(answer.status, 200, "{answer:?}");
    let parsed = answer.json();
    let (id, started_at) = (parsed["id"].as_str().unwrap(), parsed["started_at"].as_i64().unwrap());
    let started = if attached { "false" } else { "true" };
    let attached = if attached { "\"attached\":true," } else { "" };
    let want = format!(
        "{{\"id\":\"{id}\",\"started\":{started},\"idempotency_key\":\"{key}\",{attached}\
         \"started_at\":{started_at}}}\n"
    );
    assert_eq!(String::from_utf8_lossy(&answer.body), want);
    (id.to_owned(), started_at)
}

#[track_caller]
fn check_conflict(answer: &Answer, code: &str) {
    assert_eq!(answer.status, 409, "{answer:?}");
    let body = String::from_utf8_lossy(&answer.body);
    assert!(body.starts_with(&format!("{{\"code\":\"{code}\",\"message\":\"")), "{body}");
    assert!(!answer.json()["message"].as_str().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_clients_with_one_key_start_one_process() {
    let server = Server::start().await;
    let request = json!({ "command": "true", "idempotency_key": "k" });
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        let (mut client, request) = (server.connect().await, request.clone());
        calls.spawn(async move { client.post(START, &request).await });
    }
    let answers = calls.join_all().await;
    let (first, repeats): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.json().get("attached").is_none());
    assert_eq!((first.len(), repeats.len()), (1, 49));
    let first = check_answer(first[0], false, "k");
    repeats.iter().for_each(|answer| assert_eq!(check_answer(answer, true, "k"), first));
    assert_eq!(As::nobody().listed(&server).await, [first.0.as_str()]);
}

#[tokio::test]
async fn a_key_returns_its_process_until_that_is_forgotten() {
    let server = Server::start().await;
    let (chat, request) = (As::chat(A), json!({ "command": "exit 3", "idempotency_key": "k" }));
    let first = check_answer(&start(&chat, &server, &request).await, false, "k");
    assert_eq!(chat.ended(&server, &first.0).await["exit_code"], 3);
    assert_eq!(check_answer(&start(&chat, &server, &request).await, true, "k"), first);
    let path = format!("/v1/processes/{}", first.0);
    let forgotten = server.connect().await.send("DELETE", &path, "".into()).await;
    assert!(forgotten.status < 300, "{forgotten:?}");
    let second = check_answer(&start(&chat, &server, &request).await, false, "k");
    assert_ne!(second.0, first.0);
}

#[tokio::test]
async fn another_request_with_the_same_key_is_a_mismatch() {
    let server = Server::start().await;
    let chat = As::chat(A);
    let request = json!({
        "command": "true", "workdir": "/", "env": { "A": "1", "B": "2" }, "background": true,
        "idempotency_key": "k"
    });
    let first = check_answer(&start(&chat, &server, &request).await, false, "k");
    for (field, other) in [
        ("command", json!("false")),
        ("workdir", json!("/tmp")),
        ("workdir", json!("")),
        ("env", json!({ "A": "2", "B": "2" })),
        ("env", json!({ "A": "1" })),
        ("background", json!(false)),
    ] {
        let mut changed = request.clone();
        changed[field] = other;
        check_conflict(&start(&chat, &server, &changed).await, "input_mismatch");
    }
    // Members that the agent does not know make no difference, nor does the order of variables.
    let again = r#"{"extra":1,"idempotency_key":"k","background":true,"env":{"B":"2","A":"1"},
        "workdir":"/","command":"true"}"#;
    assert_eq!(check_answer(&chat.post(&server, START, again).await, true, "k"), first);
}

#[tokio::test]
async fn a_key_belongs_to_its_chat() {
    let server = Server::start().await;
    let request = json!({ "command": "true", "idempotency_key": "k" });
    let other = json!({ "command": "false", "idempotency_key": "k" });
    let (a, b, none) = (As::chat(A), As::chat(B), As::nobody());
    let in_a = check_answer(&start(&a, &server, &request).await, false, "k");
    let in_b = check_answer(&start(&b, &server, &other).await, false, "k");
    let in_none = check_answer(&start(&none, &server, &request).await, false, "k");
    assert_eq!(check_answer(&start(&a, &server, &request).await, true, "k"), in_a);
    assert_eq!(check_answer(&start(&b, &server, &other).await, true, "k"), in_b);
    assert_eq!(check_answer(&start(&none, &server, &request).await, true, "k"), in_none);
    check_conflict(&start(&a, &server, &other).await, "input_mismatch");
    // The native API has the chat in its key.
    let shown = server.connect().await.get(&format!("/v1/processes/{}", in_a.0)).await.json();
    assert_eq!(shown["key"], format!("coder:{A}:k"));
}

#[tokio::test]
async fn a_key_is_not_a_client_token_and_takes_precedence() {
    let server = Server::start().await;
    let chat = As::nobody();
    let token = json!({ "command": "true", "client_token": "k" });
    let by_token = start(&chat, &server, &token).await.json();
    let request = json!({ "command": "true", "idempotency_key": "k" });
    let by_key = check_answer(&start(&chat, &server, &request).await, false, "k");
    assert_ne!(by_token["id"], by_key.0);
    for token in ["k", "another"] {
        let both = json!({ "command": "true", "idempotency_key": "k", "client_token": token });
        assert_eq!(check_answer(&start(&chat, &server, &both).await, true, "k"), by_key);
    }
    let again = json!({ "id": by_token["id"], "started": true, "attached": true });
    assert_eq!(start(&chat, &server, &token).await.json(), again);
}

#[tokio::test]
async fn an_empty_key_is_ignored_and_a_long_one_is_refused() {
    let server = Server::start().await;
    for request in [
        json!({ "command": "true", "idempotency_key": "" }),
        json!({ "command": "true", "idempotency_key": null }),
    ] {
        for _ in 0..2 {
            let answer = start(&As::nobody(), &server, &request).await.json();
            assert_eq!(answer, json!({ "id": answer["id"], "started": true }));
        }
    }
    assert_eq!(As::nobody().listed(&server).await.len(), 4);
    let longest = "k".repeat(1024);
    let request = json!({ "command": "true", "idempotency_key": longest });
    check_answer(&start(&As::chat(A), &server, &request).await, false, &longest);
    let message = |kind| json!({ "message": format!("{kind} is longer than 1024 bytes.") });
    for (member, kind) in
        [("idempotency_key", "Idempotency key"), ("client_token", "Process token")]
    {
        let mut request = json!({ "command": "true" });
        request[member] = json!("k".repeat(1025));
        let answer = start(&As::nobody(), &server, &request).await;
        assert_eq!((answer.status, answer.json()), (400, message(kind)));
    }
    assert_eq!(As::nobody().listed(&server).await.len(), 5);
}

#[tokio::test]
async fn a_failed_start_frees_its_key() {
    let server = Server::start().await;
    let folder = server.state.path().join("later");
    let request = json!({ "command": "true", "workdir": folder, "idempotency_key": "k" });
    let failed = start(&As::chat(A), &server, &request).await;
    assert_eq!((failed.status, failed.json().get("code")), (500, None));
    std::fs::create_dir(&folder).unwrap();
    check_answer(&start(&As::chat(A), &server, &request).await, false, "k");
}

/// A server whose starts wait until this file exists.
async fn gated(gate: &Path) -> Server {
    let hook = format!("until [ -e '{}' ]; do sleep 0.02; done; env -0", gate.display());
    let hook = EnvHook::new(&hook, gate.parent().unwrap(), Duration::from_secs(60)).unwrap();
    let limits = Limits { coder_start: Duration::from_millis(100), ..Limits::default() };
    Server::made(limits, |settings| settings.provider = Some(Arc::new(hook))).await
}

#[tokio::test]
async fn a_slow_start_is_pending_for_all_requests_and_happens_once() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let server = gated(&gate).await;
    let chat = As::chat(A);
    let request = json!({ "command": "true", "idempotency_key": "k" });
    for _ in 0..3 {
        check_conflict(&start(&chat, &server, &request).await, "start_pending");
    }
    let other = json!({ "command": "false", "idempotency_key": "k" });
    check_conflict(&start(&chat, &server, &other).await, "input_mismatch");
    std::fs::write(&gate, "").unwrap();
    // Each of these waits by itself.
    let mut answer = start(&chat, &server, &request).await;
    for _ in 0..300 {
        if answer.status == 200 {
            break;
        }
        check_conflict(&answer, "start_pending");
        answer = start(&chat, &server, &request).await;
    }
    let (id, _) = check_answer(&answer, true, "k");
    assert_eq!(As::nobody().listed(&server).await, [id]);
}
