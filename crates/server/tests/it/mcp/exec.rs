//! `exec_command`, `list_processes` and `stop_process`.

use serde_json::json;

use super::client::call;
use crate::harness::{Server, argv};

#[tokio::test]
async fn a_command_that_fails_is_a_result_with_its_exit_code_and_output() {
    let server = Server::start().await;
    let told = call(&server, "exec_command", json!({ "command": "echo out; exit 7" })).await;
    assert!(!told.is_error);
    assert!(told.text().contains(": exited with code 7 after 0."), "{told:?}");
    assert!(told.text().contains("output: 4 bytes, whole"), "{told:?}");
    assert_eq!(told.output(), "out\n");
}

#[tokio::test]
async fn the_names_of_other_tools_stand_for_the_arguments() {
    let server = Server::start().await;
    for arguments in [
        json!({ "cmd": "pwd", "dir_path": "/tmp" }),
        json!({ "command": "pwd", "workdir": "/tmp", "description": "Where am I?" }),
        json!({ "command": "pwd", "cwd": "/tmp", "timeout_ms": "60000" }),
        json!({ "command": "pwd", "workdir": "/tmp", "shell": "/bin/sh", "login": false }),
        json!({ "command": ["pwd"], "workdir": "/tmp" }),
    ] {
        let told = call(&server, "exec_command", arguments.clone()).await;
        assert_eq!(told.output(), "/tmp\n", "{arguments}");
    }
    for arguments in [
        json!({ "cmd": "sleep 600", "is_background": true }),
        json!({ "command": "sleep 600", "run_in_background": "true" }),
        json!({ "command": "sleep 600", "yield_time_ms": 1 }),
    ] {
        let told = call(&server, "exec_command", arguments.clone()).await;
        assert!(told.text().contains(": running for "), "{arguments} {told:?}");
        assert!(told.text().contains("next: wait {\"process_ids\":["), "{arguments} {told:?}");
    }
}

#[tokio::test]
async fn an_argument_that_is_not_known_is_refused_with_the_nearest_one_and_nothing_is_started() {
    let server = Server::start().await;
    let told = call(&server, "exec_command", json!({ "comand": "touch /nowhere" })).await;
    assert!(told.is_error);
    assert!(
        told.text().starts_with("error: unknown argument `comand`\nnext: did you mean `command`?")
    );
    let told = call(&server, "list_processes", json!({})).await;
    assert!(told.text().starts_with("0 running, 0 ended"), "{told:?}");
}

#[tokio::test]
async fn a_timeout_stops_a_command_or_only_ends_the_waiting() {
    let server = Server::start().await;
    let killed = json!({ "command": "sleep 600", "timeout": 50 });
    let told = call(&server, "exec_command", killed).await;
    assert!(told.text().contains("ended by SIGTERM"), "{told:?}");
    assert!(told.text().contains("stopped because its timeout passed"), "{told:?}");
    let left = json!({ "command": "sleep 600", "timeout": 50, "on_timeout": "background", "yield_time_ms": 400 });
    let told = call(&server, "exec_command", left).await;
    assert!(told.text().contains("its timeout has passed, and it goes on"), "{told:?}");
}

#[tokio::test]
async fn what_a_command_leaves_running_is_named() {
    let server = Server::start().await;
    let told = call(&server, "exec_command", json!({ "command": "sleep 600 & echo done" })).await;
    assert!(told.text().contains("exited with code 0"), "{told:?}");
    assert!(told.text().contains("still running: sleep (pid "), "{told:?}");
    assert!(told.text().contains("its output is held open by sleep (pid "), "{told:?}");
    let told = call(&server, "stop_process", json!({ "process_id": told.id() })).await;
    assert!(told.text().contains("it had ended before"), "{told:?}");
    assert!(told.text().contains("gone: sleep (pid "), "{told:?}");
}

#[tokio::test]
async fn a_key_starts_a_command_once() {
    let server = Server::start().await;
    let once = || json!({ "command": argv("print x then sleep-ms 600000"), "key": "k", "yield_time_ms": 50 });
    let first = call(&server, "exec_command", once()).await;
    let second = call(&server, "exec_command", once()).await;
    assert_eq!(first.id(), second.id());
    assert!(second.text().contains("it was not started again"), "{second:?}");
}

#[tokio::test]
async fn a_stop_is_answered_with_its_proof() {
    let server = Server::start().await;
    let started = json!({ "command": argv("ignore 15 then print x then sleep-ms 600000"), "run_in_background": true });
    let id = call(&server, "exec_command", started).await.id();
    call(&server, "wait", json!({ "process_ids": [id], "pattern": "x" })).await;
    let stop = json!({ "task_id": id, "grace_ms": 100 });
    let told = call(&server, "stop_process", stop).await;
    assert!(told.text().contains("ended by SIGKILL"), "{told:?}");
    assert!(told.text().contains("stopped on request, and it had to be killed"), "{told:?}");
    assert!(told.text().contains("gone: testchild (pid "), "{told:?}");
    let words = ["proved: nothing is left in its cgroup", "nothing was found any more, by "];
    assert!(words.iter().any(|words| told.text().contains(words)), "{told:?}");
}

#[tokio::test]
async fn a_list_is_enough_to_go_on() {
    let server = Server::start().await;
    let running = json!({ "command": "echo hi; sleep 600", "name": "web", "workdir": "/tmp", "run_in_background": true });
    let id = call(&server, "exec_command", running).await.id();
    call(&server, "exec_command", json!({ "command": "exit 3" })).await;
    let told = call(&server, "list_processes", json!({})).await;
    let text = told.text();
    assert!(text.starts_with("1 running, 1 ended\n"), "{text}");
    assert!(text.contains(&format!("process {id} (web): running for ")), "{text}");
    assert!(text.contains("  command: echo hi; sleep 600\n  started 0."), "{text}");
    assert!(text.contains(" s ago in /tmp; output: 3 bytes\n"), "{text}");
    assert!(text.find("(web)").unwrap() < text.find("exited with code 3").unwrap());
    assert!(text.contains("next: wait "), "{text}");
    for given in [json!("web"), json!(id[28..]), json!(id)] {
        let told = call(&server, "read_output", json!({ "process_id": given })).await;
        assert_eq!(told.output(), "hi\n", "{given}");
    }
}

#[tokio::test]
async fn a_process_can_be_named_by_the_pid_of_its_leader() {
    let server = Server::start().await;
    let started = json!({ "command": "echo $$; exec sleep 600", "yield_time_ms": 1 });
    let id = call(&server, "exec_command", started).await.id();
    let told = call(&server, "wait", json!({ "process_ids": [id], "pattern": "." })).await;
    let pid: u32 = told.output().trim().parse().unwrap();
    for given in [json!(pid), json!(pid.to_string())] {
        let found = call(&server, "read_output", json!({ "pid": given })).await;
        assert_eq!(found.id(), told.id());
    }
}

#[tokio::test]
async fn a_process_that_is_not_there_is_looked_for_in_the_list() {
    let server = Server::start().await;
    for tool in ["wait", "read_output", "stop_process", "write_stdin"] {
        let told = call(&server, tool, json!({ "process_id": "nobody" })).await;
        assert!(told.is_error);
        assert!(told.text().contains("next: list_processes has the ids"), "{told:?}");
    }
    let told = call(&server, "read_output", json!({})).await;
    assert!(told.is_error && told.text().contains("`process_id` is missing"), "{told:?}");
}
