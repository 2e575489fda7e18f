//! `wait`, and calls that nobody waits for any more.

use std::net::TcpListener;
use std::time::Duration;

use bytes::Bytes;
use lastbyte_testkit::PATIENCE;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::client::{FIELDS, call, message};
use crate::harness::{Answer, Server};

#[tokio::test]
async fn a_wait_ends_with_the_process_and_shows_its_output() {
    let server = Server::start().await;
    let started = json!({ "command": "sleep 0.3; echo done; exit 4", "run_in_background": true });
    let id = call(&server, "exec_command", started).await.id();
    let told = call(&server, "wait", json!({ "process_id": id })).await;
    assert!(told.text().contains("exited with code 4"), "{told:?}");
    assert_eq!(told.output(), "done\n");
}

#[tokio::test]
async fn a_wait_that_lasts_too_long_says_to_wait_again() {
    let server = Server::start().await;
    let started = json!({ "command": "sleep 600", "run_in_background": true });
    let id = call(&server, "exec_command", started).await.id();
    let told = call(&server, "wait", json!({ "process_ids": [id], "timeout_ms": 50 })).await;
    assert!(!told.is_error && told.text().contains("call wait again"), "{told:?}");
}

#[tokio::test]
async fn a_wait_can_be_for_a_line_a_port_or_silence() {
    let server = Server::start().await;
    let started =
        json!({ "command": "echo one; echo ready 7; sleep 600", "run_in_background": true });
    let id = call(&server, "exec_command", started).await.id();
    let wait = json!({ "process_ids": id, "until": "pattern", "pattern": "ready \\d" });
    let told = call(&server, "wait", wait).await;
    assert!(told.text().contains("a line matched at byte 4: ready 7"), "{told:?}");
    let told = call(&server, "wait", json!({ "process_ids": [id], "silence_ms": 50 })).await;
    assert!(told.text().contains("it is silent"), "{told:?}");
    let told = call(&server, "wait", json!({ "process_ids": [id], "until": "pattern" })).await;
    assert!(told.is_error && told.text().contains("`pattern` is missing"), "{told:?}");
    // Nobody of that process listens there: the test does.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let told =
        call(&server, "wait", json!({ "process_ids": [id], "port": port, "timeout": 100 })).await;
    assert!(told.text().contains("has not come in 0.1 s"), "{told:?}");
    let input = json!({ "process_ids": [id], "until": "needs_input", "timeout": 300 });
    let told = call(&server, "wait", input).await;
    assert!(told.text().contains("has not come in 0.3 s"), "{told:?}");
}

#[tokio::test]
async fn a_line_that_never_came_is_told_from_one_that_did() {
    let server = Server::start().await;
    let id = call(&server, "exec_command", json!({ "command": "echo other" })).await.id();
    let told = call(&server, "wait", json!({ "process_ids": [id], "pattern": "ready" })).await;
    assert!(told.text().contains("it has ended, and no line matched the pattern"), "{told:?}");
}

#[tokio::test]
async fn the_first_of_several_is_enough_if_that_is_asked_for() {
    let server = Server::start().await;
    let slow = json!({ "command": "sleep 600", "run_in_background": true, "name": "slow" });
    let quick =
        json!({ "command": "sleep 0.2; exit 5", "run_in_background": true, "name": "quick" });
    call(&server, "exec_command", slow).await;
    call(&server, "exec_command", quick).await;
    let wait = json!({ "process_ids": ["slow", "quick"], "mode": "any" });
    let told = call(&server, "wait", wait).await;
    assert!(told.text().contains("(quick): exited with code 5"), "{told:?}");
    assert!(told.text().contains("(slow): running for "), "{told:?}");
}

/// Takes as long as a client waits for the first notification.
#[tokio::test]
async fn a_client_that_asks_for_progress_is_told_every_ten_seconds() {
    let server = Server::start().await;
    let arguments = json!({ "command": "echo x; sleep 600", "yield_time_ms": 11_000 });
    let meta = json!({ "progressToken": "p" });
    let params = json!({ "name": "exec_command", "arguments": arguments, "_meta": meta });
    let body = Bytes::from(message("tools/call", params).to_string());
    let mut client = server.connect().await;
    let answer = client.begin_with("POST", "/mcp", &FIELDS, body).await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let events = String::from_utf8(Answer::whole(answer).await.body.to_vec()).unwrap();
    let told = events.lines().filter_map(|line| line.strip_prefix("data: "));
    let told: Vec<Value> = told.map(|data| serde_json::from_str(data).unwrap()).collect();
    let [progress, answer] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(progress["method"], "notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "p");
    assert_eq!(progress["params"]["message"], "still running, 2 bytes of output");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("still running after waiting 11 s for it"), "{text}");
}

#[tokio::test]
async fn a_cancelled_call_leaves_its_command_running_and_the_next_answer_says_so() {
    let server = Server::start().await;
    let params = json!({ "name": "exec_command", "arguments": { "command": "sleep 600" } });
    let body = Bytes::from(message("tools/call", params).to_string());
    let mut client = server.connect_until_reset().await;
    let waiting = client.begin_with("POST", "/mcp", &FIELDS, body);
    assert!(timeout(Duration::from_millis(300), waiting).await.is_err(), "it waits");
    drop(client);
    // The server notices on its own time that the client is gone.
    let noticed = async {
        loop {
            let told = call(&server, "list_processes", json!({})).await.text();
            if let Some(note) = told.strip_prefix("note: the cancelled call left process ") {
                assert!(note[36..].starts_with(" running\n1 running, 0 ended\n"), "{told}");
                break;
            }
        }
    };
    timeout(PATIENCE, noticed).await.unwrap();
    let told = call(&server, "list_processes", json!({})).await.text();
    assert!(told.starts_with("1 running, 0 ended"), "it is said once: {told}");
}
