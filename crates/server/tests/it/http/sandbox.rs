//! Policies in the native API are enforced and shown, or nothing runs.

use std::path::Path;
use std::sync::Arc;

use lastbyte_engine::{Network, Sandbox};
use lastbyte_server::{Ports, Sandboxing};
use lastbyte_testkit::{Anchor, has_mount_namespaces};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::events::Listener;
use crate::harness::{Server, argv, env};

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_policy_runs_nothing() {
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
async fn the_network_is_refused_if_it_could_bypass_the_sandbox() {
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
async fn a_process_without_a_sandbox_says_so() {
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

/// Prints which of these files can be written, a letter for each.
fn attempts(files: &[&str]) -> String {
    let files = files.join(" ");
    format!(
        "for f in {files}; do if (echo x >$f) 2>/dev/null; then printf w; else printf -; fi; done"
    )
}

/// The output of a shell command under a policy, in a directory.
async fn printed(server: &Server, shell: &str, cwd: &Path, more: Value) -> String {
    let mut request = json!({ "shell": shell, "cwd": cwd, "wait": { "exit": true } });
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = server.connect().await.post("/v1/processes", &request).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.json()["output"]["content"]["head"].as_str().unwrap().to_owned()
}

/// A workspace, and another folder with a file in it.
fn folders() -> (TempDir, TempDir) {
    let (work, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(other.path().join("there"), "there").unwrap();
    (work, other)
}

/// A policy that does not include the test's folders unless it names them.
fn workspace(more: Value) -> Value {
    let mut policy = json!({
        "kind": "workspace_write", "exclude_slash_tmp": true, "exclude_tmpdir": true
    });
    policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "sandbox": policy })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_command_reads_everything_and_writes_nothing() {
    let (server, (work, other)) = (Server::start().await, folders());
    let there = other.path().join("there");
    let there = there.to_str().unwrap();
    let shell = format!("cat {there}; {}", attempts(&["in", "/dev/null", there]));
    for tty in [json!(null), json!({ "rows": 24, "cols": 80 })] {
        let more = json!({ "sandbox": {"kind": "read_only"}, "tty": tty });
        assert_eq!(printed(&server, &shell, work.path(), more).await, "there-w-");
    }
    assert_eq!(std::fs::read_dir(work.path()).unwrap().count(), 0);
    assert_eq!(std::fs::read(there).unwrap(), b"there");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workspace_is_the_cwd_and_the_writable_paths_without_the_protected_ones() {
    if !has_mount_namespaces() {
        return;
    }
    let (server, (work, other)) = (Server::start().await, folders());
    let outside = other.path().join("out");
    let shell = attempts(&["in", outside.to_str().unwrap()]);
    let print = async |more| printed(&server, &shell, work.path(), workspace(more)).await;
    assert_eq!(print(json!({})).await, "w-");
    assert_eq!(print(json!({ "writable": [other.path()] })).await, "ww");
    assert_eq!(print(json!({ "writable": [other.path()], "exclude_cwd": true })).await, "-w");
    let protected = work.path().join("in");
    assert_eq!(print(json!({ "protect": [protected] })).await, "--");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_network_unless_it_is_allowed() {
    if !has_mount_namespaces() {
        return;
    }
    let server = Server::start().await;
    let shell = format!("curl -s http://{}/healthz && echo reached", server.address);
    let print = async |network: bool| {
        let more = json!({ "sandbox": {"kind": "read_only", "network": network} });
        printed(&server, &shell, Path::new("/"), more).await
    };
    assert_eq!(print(false).await, "");
    assert!(print(true).await.ends_with("reached\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_shown_as_requested_and_must_match_for_a_repeated_key() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let policy = |kind: &str| json!({ "shell": "true", "key": "k", "sandbox": {"kind": kind} });
    let first = client.post("/v1/processes", &policy("read_only")).await;
    assert_eq!(first.status, 201, "{first:?}");
    assert_eq!(first.json()["process"]["sandbox"], json!({"kind": "read_only"}));
    let other = client.post("/v1/processes", &policy("workspace_write")).await;
    assert_eq!((other.status, other.code().as_str()), (409, "key_conflict"));
    let none = client.post("/v1/processes", &json!({ "shell": "true", "key": "k" })).await;
    assert_eq!(none.code(), "key_conflict");
    let again = client.post("/v1/processes", &policy("read_only")).await;
    assert_eq!((again.status, again.json()["attached"].clone()), (200, json!(true)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_applies_to_requests_without_a_policy() {
    let default = Sandbox::ReadOnly { network: Network::Off };
    let server = Server::sandboxed(Sandboxing { default, ..Sandboxing::default() }).await;
    let work = tempfile::tempdir().unwrap();
    let shell = attempts(&["in"]);
    assert_eq!(printed(&server, &shell, work.path(), json!({})).await, "-");
    let full = json!({ "sandbox": {"kind": "full_access"} });
    assert_eq!(printed(&server, &shell, work.path(), full).await, "w");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ending_by_the_sandbox_is_reported() {
    let server = Server::start().await;
    let mut client = server.connect().await;
    let mut feed = Listener::new(&mut client, "/v1/events").await;
    for (kind, want) in [("read_only", json!(true)), ("full_access", json!(null))] {
        let request = json!({
            "shell": "kill -SYS $$", "sandbox": {"kind": kind}, "wait": { "exit": true }
        });
        let answer = server.connect().await.post("/v1/processes", &request).await.json();
        assert_eq!(answer["process"]["ending"]["sandbox_denied"], want, "{answer}");
        let started = feed.next().await.data;
        assert_eq!(started["event"]["kind"], "started");
        let ended = feed.next().await.data;
        assert_eq!(ended["event"]["ending"]["sandbox_denied"], want, "{ended}");
    }
}
