//! `POST …/start`: directory, environment and errors.

use serde_json::json;

use super::client::{As, START};
use crate::harness::Server;

const CHAT: &str = "0a1b2c3d-0000-4000-8000-00000000000f";

async fn prints(server: &Server, who: &As, command: &str, more: serde_json::Value) -> String {
    let id = who.start(server, command, more).await;
    who.ended(server, &id).await["output"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_answer_has_only_the_id_and_started() {
    let server = Server::start().await;
    let answer = As::nobody().post(&server, START, "{\"command\":\" \"}").await;
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(answer.body, format!("{{\"id\":\"{id}\",\"started\":true}}\n"));
}

#[tokio::test]
async fn a_chat_is_in_the_environment_and_cannot_be_faked() {
    let server = Server::start().await;
    let show = "echo ${CODER_CHAT_ID-none}";
    let fake = json!({ "env": { "CODER_CHAT_ID": "fake" } });
    assert_eq!(prints(&server, &As::nobody(), show, json!({})).await, "none\n");
    assert_eq!(prints(&server, &As::nobody(), show, fake.clone()).await, "fake\n");
    let capitals = As::chat(&CHAT.to_uppercase());
    assert_eq!(prints(&server, &capitals, show, fake).await, format!("{CHAT}\n"));
}

#[tokio::test]
async fn invalid_variable_names_are_handled_as_in_the_agent() {
    let server = Server::start().await;
    let env = json!({ "env": { "A=B": "c", "": "v", "E": "" } });
    let command = "echo $A[${E-none}]; env | grep -c '^='";
    assert_eq!(prints(&server, &As::nobody(), command, env).await, "B=c[]\n0\n");
}

#[tokio::test]
async fn a_failed_start_says_why_and_names_the_directory() {
    let server = Server::start().await;
    let fails = async |request: serde_json::Value| {
        let answer = As::nobody().post(&server, START, &request.to_string()).await;
        assert_eq!(
            (answer.status, &answer.json()["message"]),
            (500, &json!("Failed to start process."))
        );
        answer.json()["detail"].as_str().unwrap().to_owned()
    };
    let detail = fails(json!({ "command": "true", "workdir": "/no/such/place" })).await;
    assert!(detail.starts_with("start process: ") && detail.contains("/no/such/place"), "{detail}");
    assert!(!detail.contains("sh"), "{detail}");
    for request in [
        json!({ "command": "echo \0" }),
        json!({ "command": "true", "workdir": "/tmp\0x" }),
        json!({ "command": "true", "env": { "A": "\0" } }),
        json!({ "command": "true", "env": { "A\0": "" } }),
    ] {
        let detail = fails(request).await;
        assert!(detail.starts_with("start process: ") && detail.contains("NUL"), "{detail}");
    }
    let detail = fails(json!({ "command": "x".repeat(131_072) })).await;
    assert!(detail.to_lowercase().contains("argument list too long"), "{detail}");
}

#[tokio::test]
async fn a_missing_shell_has_the_text_that_clients_look_for() {
    let environment = [("PATH".into(), "/no/such/place".into())].into_iter().collect();
    let server = Server::tuned(|settings| settings.environment = environment).await;
    let answer = As::nobody().post(&server, START, "{\"command\":\"true\"}").await;
    assert_eq!(answer.status, 500);
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("exec: \"sh\": executable file not found"), "{detail}");
}
