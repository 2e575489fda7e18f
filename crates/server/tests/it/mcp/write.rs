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

#[tokio::test]
async fn a_command_that_asks_is_answered_by_keys() {
    let server = Server::start().await;
    // It asks at once, so the call does not wait for its end.
    let asks = "stty -echo; read -r word; stty echo; echo \"${#word} letters\"; read -r word";
    let started = json!({ "command": asks, "tty": true, "yield_time_ms": 50_000 });
    let told = call(&server, "exec_command", started).await;
    let asked = "waits for input on its terminal, and does not show what is typed";
    assert!(told.text().contains(asked), "{told:?}");
    let id = told.id();
    let keys = json!({ "process_id": id, "chars": "secret", "keys": ["Backspace", "Enter"] });
    let told = call(&server, "write_stdin", keys).await;
    assert!(told.output().contains("5 letters"), "{told:?}");
    let told = call(&server, "wait", json!({ "process_ids": [id], "until": "needs_input" })).await;
    assert!(told.text().contains("waits for input on its terminal: answer"), "{told:?}");
    let told = call(&server, "write_stdin", json!({ "process_id": id, "keys": ["C-c"] })).await;
    assert!(told.text().contains("ended by SIGINT"), "{told:?}");
}

#[tokio::test]
async fn a_key_that_is_not_known_is_refused_and_nothing_is_written() {
    let server = Server::start().await;
    let started = json!({ "command": "cat", "tty": true });
    let id = call(&server, "exec_command", started).await.id();
    let keys = json!({ "process_id": id, "chars": "x", "keys": ["Enter", "Hyper-q"] });
    let told = call(&server, "write_stdin", keys).await;
    assert!(told.is_error && told.text().contains("Hyper-q"), "{told:?}");
    let told = call(&server, "write_stdin", json!({ "process_id": id, "keys": ["C-d"] })).await;
    assert!(told.text().contains("exited with code 0"), "{told:?}");
    assert!(told.text().contains("output: 0 bytes"), "{told:?}");
}

#[tokio::test]
async fn a_person_is_given_a_link_and_the_agent_waits() {
    let server = Server::start().await;
    let piped = json!({ "command": "cat", "stdin": "open", "run_in_background": true });
    let piped = call(&server, "exec_command", piped).await.id();
    let refused = json!({ "process_id": piped, "hand_over": true });
    let refused = call(&server, "write_stdin", refused).await;
    assert!(refused.is_error && refused.text().contains("no terminal"), "{refused:?}");
    let started = json!({ "command": "cat", "tty": true, "run_in_background": true });
    let id = call(&server, "exec_command", started).await.id();
    let both = json!({ "process_id": id, "hand_over": true, "chars": "x" });
    assert!(call(&server, "write_stdin", both).await.is_error);
    let told = call(&server, "write_stdin", json!({ "process_id": id, "hand_over": true })).await;
    let url = format!("http://{}/#link=", server.address);
    assert!(told.text().contains(&url) && told.text().contains("until\":\"hand_over"), "{told:?}");
    let wait = json!({ "process_ids": [id], "until": "hand_over", "timeout": 1 });
    let told = call(&server, "wait", wait.clone()).await;
    assert!(told.text().contains("call wait again"), "the link was not used yet: {told:?}");
    let other = json!({ "command": "cat", "stdin": "open", "run_in_background": true });
    let other = call(&server, "exec_command", other).await.id();
    let wait = json!({ "process_ids": [other], "until": "hand_over", "timeout": 1 });
    let told = call(&server, "wait", wait).await;
    assert!(told.text().contains("its keyboard was not handed over"), "{told:?}");
}
