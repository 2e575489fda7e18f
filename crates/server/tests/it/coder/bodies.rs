//! Invalid bodies.

use lastbyte_server::Limits;
use serde_json::json;

use super::client::{As, START};
use crate::harness::Server;

async fn check(server: &Server, path: &str, body: &str, message: &str) {
    let answer = As::nobody().post(server, path, body).await;
    let told = answer.json();
    assert_eq!((answer.status, &told["message"]), (400, &json!(message)), "{body}");
    let has_detail = told["detail"].as_str().is_some_and(|detail| !detail.is_empty());
    assert_eq!(has_detail, message.contains("valid JSON"), "{body}: {told}");
}

#[tokio::test]
async fn an_invalid_start_says_what_is_wrong() {
    let server = Server::start().await;
    let not_json = "Request body must be valid JSON.";
    for body in
        ["", "{bad", "[]", "{\"command\":5}", "{\"command\":\"x\",\"env\":[]}", "\u{feff}{}"]
    {
        check(&server, START, body, not_json).await;
    }
    for body in ["{}", "null", "{\"command\":\"\"}", "{\"command\":null}"] {
        check(&server, START, body, "Command is required.").await;
    }
    assert_eq!(As::nobody().listed(&server).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_signal_is_checked_before_its_process_is_looked_up() {
    let server = Server::start().await;
    let path = "/api/v0/processes/unknown/signal";
    check(&server, path, "{bad", "Request body must be valid JSON.").await;
    check(&server, path, "{\"signal\":9}", "Request body must be valid JSON.").await;
    check(&server, path, "{}", "Signal is required.").await;
    let unsupported = "Unsupported signal \"KILL\\n\". Use \"kill\" or \"terminate\".";
    check(&server, path, "{\"signal\":\"KILL\\n\"}", unsupported).await;
    let answer = As::nobody().post(&server, path, "{\"SIGNAL\":\"kill\"} trailing").await;
    let want = json!({ "message": "Process \"unknown\" not found." });
    assert_eq!((answer.status, answer.json()), (404, want));
}

#[tokio::test]
async fn the_error_for_a_large_body_names_the_limit() {
    let server = Server::with(Limits { body_bytes: 100, ..Limits::default() }).await;
    let body = json!({ "command": "x".repeat(100) }).to_string();
    let answer = As::nobody().post(&server, START, &body).await;
    assert_eq!(answer.status, 413);
    assert!(answer.json()["detail"].as_str().unwrap().contains("100 bytes"), "{answer:?}");
}
