//! Each client sees its own session.

use serde_json::json;

use super::client::{call, call_with, message, send};
use crate::harness::Server;

#[tokio::test]
async fn a_session_is_named_by_our_header_or_made_by_the_handshake() {
    let server = Server::start().await;
    let client = json!({ "name": "test", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let minted = send(&server, &message("initialize", params), &[]).await;
    let minted = minted.head("mcp-session-id").unwrap().to_owned();
    let all = [
        ("mcp-session-id", minted.as_str()),
        ("lastbyte-session", "caf%C3%A9"),
        ("lastbyte-session", "b"),
    ];
    for field in &all {
        let start = json!({ "command": "true", "name": "same" });
        call_with(&server, "exec_command", start, &[*field]).await;
    }
    for field in &all {
        let told = call_with(&server, "list_processes", json!({}), &[*field]).await;
        assert!(told.text().starts_with("0 running, 1 ended"), "{field:?} {told:?}");
    }
    let told = call(&server, "list_processes", json!({})).await;
    assert!(told.text().starts_with("0 running, 0 ended"), "{told:?}");
    let listed = server.connect().await.get("/v1/processes?session=caf%C3%A9").await.json();
    assert_eq!(listed["processes"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_process_of_another_session_is_not_there() {
    let server = Server::start().await;
    let (a, b) = ([("lastbyte-session", "a")], [("lastbyte-session", "b")]);
    let start = json!({ "command": "sleep 600", "run_in_background": true });
    let id = call_with(&server, "exec_command", start, &a).await.id();
    for tool in ["wait", "read_output", "stop_process", "write_stdin"] {
        let told = call_with(&server, tool, json!({ "process_id": id }), &b).await;
        assert!(told.is_error && told.text().contains("no process with the id"), "{told:?}");
    }
}

#[tokio::test]
async fn a_call_that_is_repeated_starts_its_command_once() {
    let server = Server::start().await;
    let field = [("lastbyte-call", "nonce-1")];
    let start = || json!({ "command": "sleep 600", "run_in_background": true });
    let first = call_with(&server, "exec_command", start(), &field).await.id();
    let again = call_with(&server, "exec_command", start(), &field).await.id();
    assert_eq!(first, again);
    let other = call_with(&server, "exec_command", start(), &[("lastbyte-call", "nonce-2")]).await;
    assert_ne!(first, other.id());
}
