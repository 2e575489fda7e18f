//! A start that can be repeated: `client_token` and `GET …/tokens/{token}`.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::{As, START};
use crate::harness::Server;

const A: &str = "0a1b2c3d-0000-4000-8000-00000000000a";
const B: &str = "0a1b2c3d-0000-4000-8000-00000000000b";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_clients_with_one_token_start_one_process() {
    let server = Server::start().await;
    let request = json!({ "command": "true", "client_token": "t" });
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        let (mut client, request) = (server.connect().await, request.clone());
        calls.spawn(async move { client.post(START, &request).await });
    }
    let answers: Vec<Value> = calls.join_all().await.iter().map(|answer| answer.json()).collect();
    let first: Vec<_> = answers.iter().filter(|answer| answer.get("attached").is_none()).collect();
    assert_eq!(first.len(), 1);
    let id = first[0]["id"].as_str().unwrap();
    let again = json!({ "id": id, "started": true, "attached": true });
    assert_eq!(answers.iter().filter(|answer| **answer == again).count(), 49);
    assert_eq!(As::nobody().listed(&server).await, [id]);
    let found = As::nobody().get(&server, "/api/v0/processes/tokens/t").await;
    assert_eq!((found.status, found.json()), (200, again));
}

#[tokio::test]
async fn a_token_belongs_to_one_request() {
    let server = Server::start().await;
    let request = json!({
        "command": "true", "workdir": "/", "env": { "A": "1" }, "background": true, "client_token": "t"
    });
    let first = As::chat(A).post(&server, START, &request.to_string()).await;
    assert_eq!(first.status, 200);
    for (field, other) in [
        ("command", json!("false")),
        ("workdir", json!("/tmp")),
        ("env", json!({ "A": "2" })),
        ("background", json!(false)),
    ] {
        let mut changed = request.clone();
        changed[field] = other;
        let answer = As::chat(A).post(&server, START, &changed.to_string()).await;
        assert_eq!(answer.status, 409, "{field}");
        let message = "Process token \"t\" belongs to a different request.";
        assert_eq!(answer.json()["message"], message);
        let detail =
            "the key \"t\" was already used with a different command, option or environment";
        assert_eq!(answer.json()["detail"], detail, "{field}");
    }
    assert_eq!(As::chat(B).post(&server, START, &request.to_string()).await.status, 409);
    let again = As::chat(A).post(&server, START, &request.to_string()).await.json();
    assert_eq!((&again["id"], &again["attached"]), (&first.json()["id"], &json!(true)));
}

#[tokio::test]
async fn a_token_is_found_by_chats_that_can_see_its_process() {
    let server = Server::start().await;
    let more = json!({ "client_token": "a b" });
    let id = As::chat(A).start(&server, "true", more).await;
    let path = "/api/v0/processes/tokens/a%20b";
    let missing = json!({ "message": "Process token \"a b\" not found." });
    assert_eq!(As::chat(A).get(&server, path).await.json()["id"], id);
    assert_eq!(As::nobody().get(&server, path).await.json()["id"], id);
    let hidden = As::chat(B).get(&server, path).await;
    assert_eq!((hidden.status, hidden.json()), (404, missing));
    let unknown = As::nobody().get(&server, "/api/v0/processes/tokens/none").await;
    assert_eq!(unknown.status, 404);
    let output = As::nobody().get(&server, "/api/v0/processes/tokens/output").await;
    assert_eq!(output.json(), json!({ "message": "Process \"tokens\" not found." }));
}

#[tokio::test]
async fn a_token_is_a_native_key() {
    let server = Server::start().await;
    let id = As::nobody().start(&server, "true", json!({ "client_token": "t" })).await;
    let shown = server.connect().await.get(&format!("/v1/processes/{id}")).await.json();
    assert_eq!(shown["key"], "t");
    let native = json!({ "shell": "other", "key": "t" });
    assert_eq!(server.connect().await.post("/v1/processes", &native).await.status, 409);
    As::nobody().start(&server, "true", json!({ "client_token": "" })).await;
    assert_eq!(As::nobody().get(&server, "/api/v0/processes/tokens/").await.status, 404);
}
