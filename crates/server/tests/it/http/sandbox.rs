//! Policies by the native door: what is said holds, is shown, and is never run without.

use std::sync::Arc;

use lastbyte_engine::Sandbox;
use lastbyte_server::{Ports, Sandboxing};
use lastbyte_testkit::Anchor;
use serde_json::{Value, json};

use crate::harness::{Server, argv, env};

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_makes_no_sense_runs_nothing() {
    let (server, anchor) = (Server::start().await, Arc::new(Anchor::listen()));
    let many: Vec<String> = (0..65).map(|number| format!("/{number}")).collect();
    for policy in [
        json!("read_only"),
        json!({}),
        json!({"kind": "readonly"}),
        json!({"kind": "full_access", "network": true}),
        json!({"kind": "read_only", "writable": ["/tmp"]}),
        json!({"kind": "read_only", "network": "on"}),
        json!({"kind": "workspace_write", "writable": ["relative"]}),
        json!({"kind": "workspace_write", "protect": ["."]}),
        json!({"kind": "workspace_write", "writable": ["/a\u{0}b"]}),
        json!({"kind": "workspace_write", "writable": many}),
    ] {
        let request = json!({
            "command": argv("join then hold"), "env": env(&anchor), "sandbox": policy
        });
        let answer = server.connect().await.post("/v1/processes", &request).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, "invalid_request"), "{policy}");
    }
    assert_eq!(anchor.count(), 0);
    let listed = server.connect().await.get("/v1/processes").await.json();
    assert_eq!(listed["processes"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_network_is_refused_where_it_leads_round_the_sandbox() {
    let sandboxing = Sandboxing { ports: Ports::Open, ..Sandboxing::default() };
    let server = Server::sandboxed(sandboxing).await;
    for kind in ["read_only", "workspace_write"] {
        let request = json!({ "shell": "true", "sandbox": {"kind": kind, "network": true} });
        let answer = server.connect().await.post("/v1/processes", &request).await;
        assert_eq!((answer.status, answer.code().as_str()), (422, "sandbox_unavailable"));
        assert!(answer.json()["error"]["hint"].as_str().unwrap().contains("token"), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_sandbox_a_process_says_so() {
    let server = Server::start().await;
    let shown = async |more: Value| {
        let started = server.start_child("exit 0", more).await;
        started["process"]["sandbox"].clone()
    };
    assert_eq!(shown(json!({})).await, json!({"kind": "full_access"}));
    let external = json!({"kind": "external"});
    assert_eq!(shown(json!({ "sandbox": external })).await, external);
    let listed = server.connect().await.get("/v1/processes").await.json();
    assert_eq!(listed["processes"][0]["sandbox"], external);
    let sandboxing = Sandboxing { default: Sandbox::External, ..Sandboxing::default() };
    let started = Server::sandboxed(sandboxing).await.start_child("exit 0", json!({})).await;
    assert_eq!(started["process"]["sandbox"], external, "the server's word");
}
