//! `POST /v1/processes`, with and without a wait.

use std::sync::Arc;

use lastbyte_testkit::Anchor;
use serde_json::json;

use crate::harness::{Server, argv, env, held, path};

#[tokio::test]
async fn one_call_runs_a_command_and_returns_its_result() {
    let server = Server::start().await;
    let request = json!({ "shell": "echo out; echo err >&2; exit 3", "wait": { "exit": true } });
    let answer = server.connect().await.post("/v1/processes", &request).await;
    assert_eq!(answer.status, 201);
    let answer = answer.json();
    assert_eq!(answer["wait"], json!({ "met": "exit" }));
    assert_eq!(answer["process"]["phase"], "ended");
    assert_eq!(answer["process"]["ending"]["status"], json!({ "kind": "exited", "code": 3 }));
    let content = json!({ "view": "head_tail", "head": "out\nerr\n", "tail": "" });
    assert_eq!(answer["output"]["content"], content);
    assert_eq!(answer["output"]["final_len"], 8);
    assert_eq!(answer["output"]["ending"], answer["process"]["ending"]);
    assert!(answer.get("attached").is_none());
}

#[tokio::test]
async fn a_start_is_answered_while_the_command_runs() {
    let server = Server::start().await;
    let anchor = Anchor::listen();
    let more =
        json!({ "env": env(&anchor), "labels": { "kind": "test" }, "session": "s", "cwd": "/" });
    let started = server.start_child("hold", more).await;
    let process = &started["process"];
    assert_eq!((&process["phase"], &process["log_open"]), (&json!("running"), &json!(true)));
    assert_eq!((&process["cwd"], &process["session"]), (&json!("/"), &json!("s")));
    assert_eq!(process["labels"], json!({ "kind": "test" }));
    assert_eq!(process["command"], json!(argv("hold")));
    assert!(started.get("wait").is_none() && started.get("output").is_none());
    let shown = server.connect().await.get(&path(&started)).await.json();
    assert_eq!(&shown, process);
}

#[tokio::test]
async fn a_wait_returns_the_requested_view() {
    let server = Server::start().await;
    let start = async |view: &str| {
        let request =
            json!({ "shell": "printf 'a\\033[1mb\\n'", "wait": { "exit": true }, "view": view });
        server.connect().await.post("/v1/processes", &request).await.json()["output"]["content"]
            .clone()
    };
    assert_eq!(start("raw").await, json!({ "view": "raw", "base64": "YRtbMW1iCg==" }));
    let line = json!([{ "text": "ab", "range": { "start": 0, "end": 7 } }]);
    assert_eq!(start("text").await, json!({ "view": "text", "lines": line }));
    let line = json!([{ "text": "a\u{1b}[1mb", "range": { "start": 0, "end": 7 } }]);
    assert_eq!(start("lines").await, json!({ "view": "lines", "lines": line }));
}

#[tokio::test]
async fn env_null_unsets_a_variable_and_a_string_sets_it() {
    let server = Server::start().await;
    let request = json!({
        "shell": "echo ${HOME-none} $GIVEN", "cwd": "/",
        "env": { "HOME": null, "GIVEN": "x" }, "wait": { "exit": true }
    });
    let answer = server.connect().await.post("/v1/processes", &request).await.json();
    assert_eq!(answer["output"]["content"]["head"], "none x\n");
}

#[tokio::test]
async fn a_client_that_disconnects_leaves_its_process_running() {
    let server = Server::start().await;
    let anchor = Arc::new(Anchor::listen());
    let request = json!({ "command": argv("hold"), "wait": { "exit": true }, "env": env(&anchor) });
    let mut client = server.connect().await;
    let pids = tokio::select! {
        answer = client.post("/v1/processes", &request) => panic!("answered: {answer:?}"),
        pids = held(&anchor, 1) => pids,
    };
    drop(client);
    let mut client = server.connect().await;
    // A child can connect before its process is in the map.
    let listed = loop {
        let listed = client.get("/v1/processes").await.json();
        if listed["processes"][0].is_object() {
            break listed;
        }
    };
    assert_eq!(listed["processes"][0]["phase"], "running");
    assert_eq!(listed["processes"][0]["pid"], pids[0]);
    anchor.tell("exit 4");
    let path = format!("/v1/processes/{}", listed["processes"][0]["id"].as_str().unwrap());
    let wait = json!({ "exit": true });
    let answer = server.connect().await.post(&format!("{path}/wait"), &wait).await.json();
    assert_eq!(answer["process"]["ending"]["status"]["code"], 4);
}
