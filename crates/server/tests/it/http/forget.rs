//! Listing and forgetting.

use std::sync::Arc;
use std::time::Duration;

use lastbyte_server::verbs::read::{self, ReadRequest};
use lastbyte_server::{App, Limits};
use lastbyte_testkit::Anchor;
use lastbyte_wire::{ErrorCode, View};
use serde_json::{Value, json};

use crate::harness::{Server, env, held};

#[tokio::test]
async fn an_ended_process_is_forgotten_and_a_running_one_only_when_stopped() {
    let server = Server::start().await;
    let (_anchor, path) = server.told(json!({})).await;
    let mut client = server.connect().await;
    let refused = client.send("DELETE", &path, "".into()).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "not_ended"));
    let forgotten = client.send("DELETE", &format!("{path}?stop=true"), "".into()).await;
    assert_eq!((forgotten.status, forgotten.body.len()), (204, 0));
    assert_eq!(client.get(&path).await.status, 404);
    assert_eq!(client.send("DELETE", &path, "".into()).await.status, 404);
}

#[tokio::test]
async fn a_process_with_held_output_is_forgotten_only_with_stop() {
    let server = Server::start().await;
    let anchor = Arc::new(Anchor::listen());
    let more = json!({ "env": env(&anchor), "wait": { "exit": true } });
    let path = server.path_of("leave-tail", more).await;
    held(&anchor, 1).await;
    let mut client = server.connect().await;
    let refused = client.send("DELETE", &path, "".into()).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "output_held"));
    assert_eq!(client.get(&format!("{path}/survivors")).await.json().as_array().unwrap().len(), 1);
    let forgotten = client.send("DELETE", &format!("{path}?stop=true"), "".into()).await;
    assert_eq!(forgotten.status, 204);
    assert_eq!(anchor.wait_for_at_most(0), Vec::<u32>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_that_is_forgotten_during_a_read_is_not_found() {
    let server = Server::start().await;
    let path = server.path_of("write-bytes 5000", json!({ "wait": { "exit": true } })).await;
    let process = server.engine.get(path.rsplit('/').next().unwrap().parse().unwrap()).unwrap();
    server.engine.forget(process.id()).unwrap();
    // As for a request that found the process just before.
    let (snapshot, asked) =
        (process.snapshot(), ReadRequest::whole_log(View::HeadTail, None).unwrap());
    let app = App::new(server.engine.clone(), Limits::default());
    let view = read::view(&app, &process, &snapshot, asked).await;
    assert_eq!(view.unwrap_err().code, ErrorCode::ProcessNotFound);
}

/// Not `process_not_found`: the process is known, and everything else about it can be asked.
#[tokio::test]
async fn output_whose_file_was_removed_is_said_to_be_gone() {
    let server = Server::start().await;
    let (anchor, path) = server.told(json!({})).await;
    anchor.tell("write-bytes 100000");
    let mut client = server.connect().await;
    client.post(&format!("{path}/wait"), &json!({ "output_past": 99_999 })).await;
    std::fs::remove_dir_all(server.state.path()).unwrap();
    anchor.tell("exit 0");
    client.post(&format!("{path}/wait"), &json!({ "exit": true })).await;
    for query in ["", "?view=text", "?view=head_tail", "/search?pattern=x"] {
        let refused = client.get(&format!("{path}/output{query}")).await;
        assert_eq!((refused.status, refused.code().as_str()), (500, "failed"), "{query}");
        let message = refused.json()["error"]["message"].to_string();
        assert!(message.contains("cannot read the log: its file "), "{query}: {message}");
    }
    assert_eq!(client.get(&path).await.status, 200);
}

#[tokio::test]
async fn a_list_has_pages_and_filters_newest_first() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for index in 0..5 {
        let session = if index % 2 == 0 { "even" } else { "odd" };
        let more = json!({ "session": session, "labels": { "n": index.to_string() }, "wait": { "exit": true } });
        ids.push(server.start_child("exit 0", more).await["process"]["id"].clone());
    }
    ids.reverse();
    let mut client = server.connect().await;
    let mut listed = async |query: &str| -> (Vec<Value>, Value) {
        let page = client.get(&format!("/v1/processes?{query}")).await.json();
        let processes = page["processes"].as_array().unwrap().clone();
        (processes.iter().map(|process| process["id"].clone()).collect(), page["next"].clone())
    };
    assert_eq!(listed("").await, (ids.clone(), Value::Null));
    let (page, next) = listed("limit=2").await;
    assert_eq!(page, ids[..2]);
    let (page, _) = listed(&format!("limit=2&before={}", next.as_str().unwrap())).await;
    assert_eq!(page, ids[2..4]);
    assert_eq!(listed("session=odd").await.0, [ids[1].clone(), ids[3].clone()]);
    assert_eq!(listed("label=n%3D4").await.0, [ids[0].clone()]);
    assert_eq!(listed("phase=running").await.0, Vec::<Value>::new());
    assert_eq!(listed("phase=ended").await.0.len(), 5);
}

#[tokio::test]
async fn the_health_has_the_limits_of_what_is_kept() {
    let server = Server::tuned(|settings| {
        settings.retention.at_least = Duration::from_millis(1500);
        settings.retention.at_most = Duration::from_secs(60);
        settings.retention.per_session = 7;
    })
    .await;
    let health = server.connect().await.get("/healthz").await.json();
    let want = json!({
        "at_least_ms": 1500,
        "at_most_ms": 60_000,
        "per_session": 7,
        "processes": 10_000,
        "output_bytes": 2_u64 << 30,
    });
    assert_eq!(health["retention"], want);
}
