//! Signal, stop and resize.

use std::collections::BTreeMap;
use std::sync::Arc;

use lastbyte_testkit::Anchor;
use serde_json::json;

use crate::harness::{Server, env, held};

#[tokio::test]
async fn a_stop_returns_the_proof_that_the_whole_tree_is_gone() {
    let server = Server::start().await;
    let anchor = Arc::new(Anchor::listen());
    let path = server.path_of("tree 6 mixed then hold", json!({ "env": env(&anchor) })).await;
    let pids = held(&anchor, 7).await;
    let stop = json!({ "stop": { "signal": "KILL", "grace_ms": 0 } });
    let proof = server.connect().await.post(&format!("{path}/stop"), &stop).await.json();
    assert_eq!(proof["left"], json!([]));
    let mut gone: Vec<u32> = serde_json::from_value(proof["gone"].clone()).unwrap();
    gone.sort_unstable();
    let mut want = pids.clone();
    want.sort_unstable();
    assert_eq!(gone, want);
    let names: BTreeMap<u32, String> = serde_json::from_value(proof["names"].clone()).unwrap();
    assert_eq!(names, want.into_iter().map(|pid| (pid, "testchild".to_owned())).collect());
    let shown = server.connect().await.get(&path).await.json();
    assert_eq!(shown["ending"]["cause"]["kind"], "stopped");
}

#[tokio::test]
async fn a_signal_reports_what_it_reached() {
    let server = Server::start().await;
    let (_anchor, path) = server.told(json!({})).await;
    let mut client = server.connect().await;
    let answer = client.post(&format!("{path}/signal"), &json!({ "signal": "SIGTERM" })).await;
    assert_eq!(answer.json(), json!({ "delivered": { "to": "group" } }));
    client.post(&format!("{path}/wait"), &json!({ "exit": true })).await;
    let answer = client.post(&format!("{path}/signal"), &json!({ "signal": "15" })).await;
    assert_eq!(answer.json(), json!({ "delivered": { "to": "nobody" } }));
    let refused = client.post(&format!("{path}/signal"), &json!({ "signal": "65" })).await;
    assert_eq!((refused.status, refused.code().as_str()), (400, "invalid_request"));
}

#[tokio::test]
async fn only_a_terminal_can_be_resized() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let request = json!({
        "shell": "stty size; read go; stty size", "stdin": "open",
        "tty": { "rows": 10, "cols": 20 }
    });
    let started = client.post("/v1/processes", &request).await.json();
    let path = crate::harness::path(&started);
    client.post(&format!("{path}/wait"), &json!({ "pattern": "10 20" })).await;
    let resized = client.post(&format!("{path}/resize"), &json!({ "rows": 30, "cols": 40 })).await;
    assert_eq!(resized.status, 204);
    client.send("POST", &format!("{path}/stdin"), "\n".into()).await;
    let met = client.post(&format!("{path}/wait"), &json!({ "pattern": "30 40" })).await.json();
    assert_eq!(met["wait"]["met"], "pattern");
    let (_anchor, path) = server.told(json!({})).await;
    let refused = client.post(&format!("{path}/resize"), &json!({ "rows": 1, "cols": 1 })).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "no_terminal"));
}
