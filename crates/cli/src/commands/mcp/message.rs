//! What a shim has to know of a message: who it is from, what it calls, and how to say no.

use serde_json::{Value, json};

use lastbyte_client::McpRepeat;
use lastbyte_client::wire::mcp;

/// A message of the client.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Incoming(Value);

impl Incoming {
    /// The answer to a line that is no message, if it is none.
    pub(super) fn parse(line: &[u8]) -> Result<Self, Vec<u8>> {
        match serde_json::from_slice(line) {
            Ok(message @ Value::Object(_)) => Ok(Self(message)),
            Ok(_) => Err(error(&Value::Null, -32600, "a message is a JSON object")),
            Err(why) => Err(error(&Value::Null, -32700, &format!("invalid JSON: {why}"))),
        }
    }

    /// `None` for what is not answered.
    pub(super) fn id(&self) -> Option<&Value> {
        self.0.get("id").filter(|_| self.0.get("method").is_some())
    }

    /// The request that the client does not want answered any more.
    pub(super) fn cancelled_id(&self) -> Option<&Value> {
        let is_cancelled = self.0["method"] == "notifications/cancelled";
        self.0["params"].get("requestId").filter(|_| is_cancelled)
    }

    /// The tool that it calls.
    fn tool(&self) -> Option<&str> {
        self.0["params"]["name"].as_str().filter(|_| self.0["method"] == "tools/call")
    }

    /// Whether it may be sent again.
    pub(super) fn repeat(&self) -> McpRepeat {
        match self.tool() {
            Some(mcp::UNREPEATABLE_TOOL) => McpRepeat::Never,
            Some(_) | None => McpRepeat::Safe,
        }
    }

    /// As it is sent, with where and with which variables a command is started.
    pub(super) fn into_body(mut self, launch: &Value) -> Vec<u8> {
        if self.tool() == Some(mcp::STARTING_TOOL) {
            let params = self.0["params"].as_object_mut();
            let meta = params.map(|params| params.entry("_meta").or_insert(json!({})));
            if let Some(Value::Object(meta)) = meta {
                meta.insert(mcp::LAUNCH.to_owned(), launch.clone());
            }
        }
        self.0.to_string().into_bytes()
    }

    /// Its answer, if the server gave none: a tool's error is text that the model reads.
    pub(super) fn refusal(&self, text: &str) -> Option<Vec<u8>> {
        let id = self.id()?;
        if self.tool().is_none() {
            return Some(error(id, -32603, text));
        }
        let content = json!([{ "type": "text", "text": format!("error: {text}") }]);
        let result = json!({ "content": content, "isError": true });
        Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string().into_bytes())
    }
}

fn error(id: &Value, code: i32, text: &str) -> Vec<u8> {
    let error = json!({ "code": code, "message": text });
    json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(value: Value) -> Incoming {
        Incoming::parse(value.to_string().as_bytes()).unwrap()
    }

    fn call(tool: &str) -> Incoming {
        let params = json!({ "name": tool, "arguments": {} });
        message(json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }))
    }

    #[test]
    fn a_write_is_never_repeated_and_everything_else_is() {
        assert_eq!(call("write_stdin").repeat(), McpRepeat::Never);
        for tool in ["exec_command", "wait", "stop_process"] {
            assert_eq!(call(tool).repeat(), McpRepeat::Safe, "{tool}");
        }
        assert_eq!(message(json!({ "id": 1, "method": "ping" })).repeat(), McpRepeat::Safe);
    }

    #[test]
    fn a_start_is_told_where_the_client_is() {
        let launch = json!({ "cwd": "/w", "env": {} });
        let sent: Value = serde_json::from_slice(&call("exec_command").into_body(&launch)).unwrap();
        assert_eq!(sent["params"]["_meta"]["lastbyte/launch"], launch);
        let sent: Value = serde_json::from_slice(&call("wait").into_body(&launch)).unwrap();
        assert_eq!(sent["params"].get("_meta"), None);
    }

    #[test]
    fn a_tool_that_cannot_be_called_says_why_to_the_model() {
        let refused: Value = serde_json::from_slice(&call("wait").refusal("no").unwrap()).unwrap();
        assert_eq!((&refused["id"], &refused["result"]["isError"]), (&json!(7), &json!(true)));
        let listing = message(json!({ "id": "a", "method": "tools/list" }));
        let refused: Value = serde_json::from_slice(&listing.refusal("no").unwrap()).unwrap();
        assert_eq!(refused["error"]["message"], "no");
        assert_eq!(message(json!({ "method": "notifications/x" })).refusal("no"), None);
    }

    #[test]
    fn what_is_no_message_is_answered_with_an_error() {
        for (line, code) in [("{", -32700), ("[]", -32600), ("7", -32600)] {
            let answer = Incoming::parse(line.as_bytes()).unwrap_err();
            let answer: Value = serde_json::from_slice(&answer).unwrap();
            assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &Value::Null));
        }
    }
}
