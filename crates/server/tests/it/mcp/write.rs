//! `write_stdin`.

use serde_json::json;

use super::client::call;
use crate::harness::Server;

#[tokio::test]
async fn what_is_written_is_answered_with_the_new_output() {
    let server = Server::start().await;
    let started =
        json!({ "command": "echo ready; cat", "stdin": "open", "run_in_background": true });
    let id = call(&server, "exec_command", started).await.id();
    call(&server, "wait", json!({ "process_ids": [id], "pattern": "ready" })).await;
    let told = call(&server, "write_stdin", json!({ "session_id": id, "chars": "héllo\n" })).await;
    assert!(told.text().contains("wrote 7 bytes"), "{told:?}");
    assert_eq!(told.output(), "héllo\n");
    let told = call(&server, "write_stdin", json!({ "pid": id, "input": "x", "eof": true })).await;
    assert!(told.text().contains("exited with code 0"), "{told:?}");
    assert!(told.text().contains("and closed its input"), "{told:?}");
    assert_eq!(told.output(), "x\n");
}

#[tokio::test]
async fn a_terminal_is_typed_on() {
    let server = Server::start().await;
    let started = json!({ "command": "read -p 'name? ' name; echo \"hi $name\"", "shell": "bash", "tty": true, "yield_time_ms": 1 });
    let id = call(&server, "exec_command", started).await.id();
    let told = call(&server, "wait", json!({ "process_ids": [id], "pattern": "name" })).await;
    assert_eq!(told.output(), "name? \n");
    let told =
        call(&server, "write_stdin", json!({ "process_id": told.id(), "chars": "bo\n" })).await;
    assert!(told.output().ends_with("hi bo\n"), "{told:?}");
    assert!(told.text().contains("exited with code 0"), "{told:?}");
}

#[tokio::test]
async fn a_command_without_input_is_refused_with_how_to_start_it() {
    let server = Server::start().await;
    let started = json!({ "command": "sleep 600", "run_in_background": true });
    let id = call(&server, "exec_command", started).await.id();
    let told = call(&server, "write_stdin", json!({ "process_id": id, "chars": "x" })).await;
    assert!(told.is_error);
    assert!(told.text().contains("next: start it again by exec_command with tty or stdin=open"));
}
