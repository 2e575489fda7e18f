//! A client that calls tools and reads their text.

use bytes::Bytes;
use serde_json::{Value, json};

use crate::harness::{Answer, Server};

/// What a tool has answered.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) is_error: bool,
    pub(super) blocks: Vec<String>,
}

impl Told {
    pub(super) fn new(answer: &Answer) -> Self {
        let result = &answer.json()["result"];
        assert_eq!(result.get("structuredContent"), None);
        let blocks = result["content"].as_array().unwrap_or_else(|| panic!("{answer:?}"));
        let text = |block: &Value| block["text"].as_str().unwrap().to_owned();
        Self { is_error: result["isError"] == true, blocks: blocks.iter().map(text).collect() }
    }

    /// All of it.
    pub(super) fn text(&self) -> String {
        self.blocks.join("\n")
    }

    /// Behind the facts.
    pub(super) fn output(&self) -> String {
        assert!(!self.is_error, "{self:?}");
        let text = self.text();
        let (_, output) = text.split_once("\n\n").unwrap_or_else(|| panic!("{self:?}"));
        output.to_owned()
    }

    /// The id of the process that it is about.
    pub(super) fn id(&self) -> String {
        let text = self.text();
        let from = text.find("process 0").unwrap_or_else(|| panic!("{self:?}")) + 8;
        text[from..from + 36].to_owned()
    }
}

pub(super) const FIELDS: [(&str, &str); 2] =
    [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];

pub(super) fn message(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

/// Sends a message with more header fields.
pub(super) async fn send(server: &Server, message: &Value, more: &[(&str, &str)]) -> Answer {
    let fields = [&FIELDS, more].concat();
    let body = Bytes::from(message.to_string());
    let begun = server.connect().await.begin_with("POST", "/mcp", &fields, body).await;
    Answer::whole(begun).await
}

pub(super) async fn call_with(
    server: &Server,
    tool: &str,
    arguments: Value,
    more: &[(&str, &str)],
) -> Told {
    let params = json!({ "name": tool, "arguments": arguments });
    let answer = send(server, &message("tools/call", params), more).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    Told::new(&answer)
}

pub(super) async fn call(server: &Server, tool: &str, arguments: Value) -> Told {
    call_with(server, tool, arguments, &[]).await
}
