//! A key starts one process, however often the request is repeated.

use serde_json::json;
use tokio::task::JoinSet;

use crate::harness::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_clients_with_one_key_start_one_process() {
    let server = Server::start().await;
    let request = json!({ "shell": "cat; echo done", "key": "k", "stdin": { "text": "in\n" }, "wait": { "exit": true } });
    let mut calls = JoinSet::new();
    for _ in 0..50 {
        let (mut client, request) = (server.connect().await, request.clone());
        calls.spawn(async move { client.post("/v1/processes", &request).await });
    }
    let answers = calls.join_all().await;
    let started: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
    assert_eq!(started.len(), 1);
    for answer in &answers {
        let answer = answer.json();
        assert_eq!(answer["process"]["id"], started[0].json()["process"]["id"]);
        assert_eq!(answer["output"]["content"]["head"], "in\ndone\n");
    }
    let attached = answers.iter().filter(|answer| answer.json()["attached"] == true);
    assert_eq!(attached.count(), 49);
    let listed = server.connect().await.get("/v1/processes").await.json();
    assert_eq!(listed["processes"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_with_another_launch_is_a_conflict() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let first = client.post("/v1/processes", &json!({ "shell": "true", "key": "k" })).await;
    assert_eq!(first.status, 201);
    for (other, differs) in [
        (json!({ "shell": "false", "key": "k" }), "command"),
        (json!({ "shell": "true", "key": "k", "stdin": { "text": "" } }), "standard input"),
        (json!({ "shell": "true", "key": "k", "env": { "A": "secret" } }), "variables (A)"),
    ] {
        let second = client.post("/v1/processes", &other).await;
        assert_eq!((second.status, second.code().as_str()), (409, "key_conflict"));
        let message = &second.json()["error"]["message"];
        let want = "the key \"k\" was already used for a start that differs in its";
        assert_eq!(*message, format!("{want} {differs}"));
    }
    let again = client.post("/v1/processes", &json!({ "shell": "true", "key": "k" })).await;
    assert_eq!((again.status, again.json()["attached"].clone()), (200, json!(true)));
}
