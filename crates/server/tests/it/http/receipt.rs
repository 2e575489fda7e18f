//! `GET …/receipt`: what was run, under which terms, and the hash of the output.

use std::sync::Arc;

use lastbyte_testkit::Anchor;
use serde_json::{Value, json};

use crate::harness::{Server, env, held};

/// What `sha256sum` prints for `tail`.
const SHA256_OF_TAIL: &str = "0c62f876ef1dea830de9f32c2f4b46dd6d74d50d15896e09ef5a2fcd4ac7e1d7";

async fn ended(server: &Server, actions: &str, more: Value) -> String {
    let path = server.path_of(actions, more).await;
    server.connect().await.post(&format!("{path}/wait"), &json!({ "exit": true })).await;
    path
}

async fn receipt(server: &Server, path: &str) -> Value {
    let answer = server.connect().await.get(&format!("{path}/receipt")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

#[tokio::test]
async fn a_receipt_has_the_terms_of_the_start() {
    let server = Server::start().await;
    let more = json!({
        "timeout_ms": 60_000, "idle_timeout_ms": 50_000, "on_timeout": "background",
        "quota_bytes": 131_072, "stop": { "signal": "INT", "grace_ms": 1500 },
    });
    let path = ended(&server, "exit 3", more).await;
    let receipt = receipt(&server, &path).await;
    let shown = server.connect().await.get(&path).await.json();
    for field in ["id", "command", "cwd", "sandbox", "started_unix_ns", "ending"] {
        assert_eq!(receipt["process"][field], shown[field], "{field}");
    }
    assert_eq!(receipt["stop"], json!({ "signal": "INT", "grace_ms": 1500 }));
    let limits = json!({
        "timeout_ms": 60_000, "idle_timeout_ms": 50_000, "on_timeout": "background",
        "quota_bytes": 131_072,
    });
    assert_eq!(receipt["limits"], limits);
    assert_eq!(receipt.get("enforcement"), None, "nothing is restricted");
}

#[tokio::test]
async fn a_receipt_names_variables_and_has_no_value() {
    let server = Server::start().await;
    let variables = json!({ "SET": "a-distinctive-value", "REMOVED": null });
    let path = ended(&server, "exit 0", json!({ "env": variables })).await;
    let receipt = receipt(&server, &path).await;
    assert_eq!(receipt["env_names"], json!(["REMOVED", "SET"]));
    assert!(!receipt.to_string().contains("distinctive"), "{receipt}");
}

#[tokio::test]
async fn a_running_process_has_no_hash() {
    let server = Server::start().await;
    let (_anchor, path) = server.told(json!({})).await;
    let receipt = receipt(&server, &path).await;
    assert_eq!(receipt["process"]["phase"], "running");
    assert_eq!(receipt["output_hash"], json!({ "kind": "not_ended" }));
}

#[tokio::test]
async fn late_output_does_not_change_the_hash() {
    let server = Server::start().await;
    let anchor = Arc::new(Anchor::listen());
    let path = ended(&server, "leave-tail", json!({ "env": env(&anchor) })).await;
    held(&anchor, 1).await;
    let hash = json!({ "kind": "sha256", "hex": SHA256_OF_TAIL, "bytes": 4 });
    assert_eq!(receipt(&server, &path).await["output_hash"], hash);
    anchor.tell("print later");
    server.connect().await.post(&format!("{path}/wait"), &json!({ "output_past": 8 })).await;
    let receipt = receipt(&server, &path).await;
    assert_eq!((&receipt["process"]["total"], &receipt["output_hash"]), (&json!(9), &hash));
}

#[tokio::test]
async fn dropped_output_has_no_hash_and_names_what_was_dropped() {
    let server = Server::start().await;
    let path = ended(&server, "write-bytes 1000000", json!({ "quota_bytes": 131_072 })).await;
    let receipt = receipt(&server, &path).await;
    let dropped = &receipt["process"]["dropped"];
    assert_eq!(dropped.as_array().unwrap().len(), 1, "{dropped}");
    assert_eq!(receipt["output_hash"], json!({ "kind": "dropped", "dropped": dropped }));
}
