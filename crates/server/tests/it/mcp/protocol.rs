//! Both wires: with a handshake, and without.

use bytes::Bytes;
use serde_json::{Value, json};

use super::client::{FIELDS, Told, message, send};
use crate::harness::{Answer, Server};

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[tokio::test]
async fn a_handshake_is_answered_with_its_version_and_a_session() {
    let server = Server::start().await;
    for version in ["2025-06-18", "2025-11-25"] {
        let client = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let answer = send(&server, &message("initialize", params), &[]).await;
        let result = &answer.json()["result"];
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"]["name"], "lastbyte");
        let session = answer.head("mcp-session-id").unwrap().to_owned();
        let field = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", version)];
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(send(&server, &ready, &field).await.status, 202);
        let listed = send(&server, &message("tools/list", json!({})), &field).await.json();
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 7);
    }
}

#[tokio::test]
async fn a_request_without_a_handshake_carries_its_version() {
    let server = Server::start().await;
    let fields = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "server/discover")];
    let discover = message("server/discover", json!({ "_meta": meta() }));
    let answer = send(&server, &discover, &fields).await;
    assert_eq!(answer.head("mcp-session-id"), None);
    let versions = answer.json()["result"]["supportedVersions"].clone();
    for version in ["2025-06-18", "2025-11-25", "2026-07-28"] {
        assert!(versions.as_array().unwrap().contains(&json!(version)), "{versions}");
    }
    let arguments = json!({ "command": "echo hi" });
    let params = json!({ "name": "exec_command", "arguments": arguments, "_meta": meta() });
    let fields = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "exec_command"),
    ];
    let told = Told::new(&send(&server, &message("tools/call", params), &fields).await);
    assert_eq!(told.output(), "hi\n");
}

#[tokio::test]
async fn the_list_of_tools_is_always_the_same() {
    let server = Server::start().await;
    let list = message("tools/list", json!({}));
    let first = send(&server, &list, &[]).await.body;
    assert_eq!(first, send(&server, &list, &[]).await.body);
    let listed: Value = serde_json::from_slice(&first).unwrap();
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let want = [
        "exec_command",
        "write_stdin",
        "wait",
        "read_output",
        "search_output",
        "list_processes",
        "stop_process",
    ];
    assert_eq!(names, want);
    assert_eq!(tools[3]["annotations"]["readOnlyHint"], true);
    assert_eq!(tools[0]["annotations"]["destructiveHint"], true);
    assert!(tools[0]["description"].as_str().unwrap().starts_with("Runs a command and waits"));
}

#[tokio::test]
async fn what_is_no_message_is_answered_with_an_error_of_the_protocol() {
    let server = Server::start().await;
    for (body, code) in [
        ("", -32700),
        ("{", -32700),
        ("\u{FEFF}{}", -32700),
        ("[]", -32600),
        ("null", -32600),
        ("{\"jsonrpc\":\"2.0\"}", -32600),
        ("{\"id\":7,\"method\":\"tools/list\"}", -32600),
    ] {
        let mut client = server.connect().await;
        let answer = client.begin_with("POST", "/mcp", &FIELDS, Bytes::from(body)).await;
        let answer = Answer::whole(answer).await;
        assert!((400..500).contains(&answer.status), "{body:?} {answer:?}");
        assert_eq!(answer.json()["error"]["code"], code, "{body:?} {answer:?}");
    }
    let answer = server.connect().await.get("/mcp").await;
    assert_eq!((answer.status, answer.head("allow")), (405, Some("POST")));
}

#[tokio::test]
async fn a_call_with_invalid_parameters_is_told_which() {
    let server = Server::start().await;
    for (params, named) in [
        (json!({ "name": 7 }), "params.name"),
        (json!([]), "params.name"),
        (json!({ "name": "wait", "arguments": [] }), "params.arguments"),
    ] {
        let answer = send(&server, &message("tools/call", params), &[]).await.json();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32602), &json!(1)));
        assert!(answer["error"]["message"].as_str().unwrap().contains(named), "{answer}");
    }
    let nobody = json!({ "name": "wait", "arguments": { "process_ids": [] } });
    let told = Told::new(&send(&server, &message("tools/call", nobody), &[]).await);
    assert!(told.is_error && told.text().contains("`process_ids` must be"), "{told:?}");
}

#[tokio::test]
async fn an_unknown_tool_is_an_error_that_names_the_known_ones() {
    let server = Server::start().await;
    let params = json!({ "name": "bash", "arguments": {} });
    let told = Told::new(&send(&server, &message("tools/call", params), &[]).await);
    assert!(told.is_error && told.text().contains("the tools are exec_command, "), "{told:?}");
}

#[tokio::test]
async fn there_are_only_tools() {
    let server = Server::start().await;
    for method in ["prompts/list", "resources/list", "resources/templates/list", "nothing"] {
        let answer = send(&server, &message(method, json!({})), &[]).await.json();
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
}

#[tokio::test]
async fn a_message_of_a_shim_needs_no_other_fields() {
    let server = Server::start().await;
    let params = json!({ "name": "list_processes", "arguments": {}, "_meta": meta() });
    let body = Bytes::from(message("tools/call", params).to_string());
    let shim = [("lastbyte-stdio", "1"), ("lastbyte-session", "s")];
    let answer = server.connect().await.begin_with("POST", "/mcp", &shim, body).await;
    assert!(!Told::new(&Answer::whole(answer).await).is_error);
}
