//! Messages of agents, whatever they are.

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use lastbyte_engine::Filter;
use lastbyte_testkit::{Corpus, fuzz_inputs};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower_service::Service;

use super::tools::ToolName;
use crate::fuzz;
use crate::listen::Grant;

/// More than any answer has.
const MOST: usize = 1 << 20;

/// A request gets one answer with its id, which has a result or an error; what is none gets an error or is
/// accepted without an answer; a wait may be waited for. Nothing that is asked for starts a second process here.
#[test]
fn no_message_does_harm() {
    let state = tempfile::tempdir().unwrap();
    let (runtime, app) = fuzz::app(state.path());
    let _entered = runtime.enter();
    let router = super::router(app.clone());
    let mut words =
        vec!["\"id\":", "\"method\":", "null", "1e999", "-1", "\\ud800", "{", "}", "[", "]", ","];
    words.extend(ToolName::ALL.map(ToolName::as_str));
    for (main, others) in ToolName::ALL.into_iter().flat_map(ToolName::arguments) {
        words.push(main);
        words.extend(*others);
    }
    let corpus = Corpus { name: "mcp", made: made(), words: &words };
    fuzz_inputs(1_000, corpus, |input| {
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .extension(Grant::all())
            .body(Body::from(input.to_vec()))
            .unwrap();
        let answer = runtime.block_on(timeout(fuzz::SOON, async {
            let (head, body) = router.clone().call(request).await.unwrap().into_parts();
            (head.status, to_bytes(body, MOST).await.unwrap())
        }));
        assert_eq!(app.engine.list(&Filter::default(), None, 9).processes.len(), 1);
        answer.ok().map(|(status, body)| answered(input, status, &body))
    });
}

/// What tells answers of one kind from those of another.
fn answered(message: &[u8], status: StatusCode, body: &[u8]) -> (u16, Option<i64>, String) {
    assert!(!status.is_server_error(), "{status}");
    if status == StatusCode::ACCEPTED {
        assert!(body.is_empty());
        return (status.as_u16(), None, String::new());
    }
    let message: Value = serde_json::from_slice(message).unwrap_or_default();
    let answer: Value = serde_json::from_slice(body).unwrap();
    assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    assert_ne!(answer.get("result").is_some(), answer.get("error").is_some(), "{answer}");
    assert!(answer["id"].is_null() || answer["id"] == message["id"], "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str();
    let text = text.or(answer["error"]["message"].as_str()).unwrap_or_default();
    (status.as_u16(), answer["error"]["code"].as_i64(), text.chars().take(30).collect())
}

/// A call of each tool, and the rest of the protocol.
fn made() -> Vec<Vec<u8>> {
    let call = |name: &str, arguments: Value| {
        let params = json!({ "name": name, "arguments": arguments });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
    };
    let own = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "n", "version": "0" } });
    let sandbox = json!({ "kind": "workspace_write", "writable_roots": ["/x"] });
    [
        call("exec_command", json!({ "command": "none", "workdir": "/", "env": { "A": null, "B": 1 }, "tty": "true" })),
        call("exec_command", json!({ "cmd": ["none"], "timeout": 5, "on_timeout": "background", "sandbox": sandbox })),
        call("exec_command", json!({ "command": "none", "login": true, "key": "k", "sandbox": "read-only" })),
        call("write_stdin", json!({ "process_id": "it", "chars": "x" })),
        call("wait", json!({ "process_ids": ["it"], "until": "pattern", "pattern": "t(w)o", "offset": 1 })),
        call("wait", json!({ "process_ids": "it", "port": 1, "timeout": 9 })),
        call("read_output", json!({ "process_id": "it", "offset": 0, "max_output_tokens": 100 })),
        call("search_output", json!({ "process_id": "it", "pattern": "one|two" })),
        call("list_processes", json!({})),
        call("stop_process", json!({ "process_id": "it" })),
        json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "initialize", "params": own }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": 4, "result": {} }),
    ]
    .map(|message| message.to_string().into_bytes())
    .to_vec()
}
