//! The messages of the protocol. They have no `jsonrpc` member, in either direction.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::doors::rpc::{RequestId, to_json};

/// A message that wants an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcRequest {
    pub(super) id: RequestId,
    pub(super) method: String,
    pub(super) params: Option<Value>,
}

impl RpcRequest {
    /// `None` for everything that wants no answer: notifications, answers, and anything else.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        // The whole text, so that an error anywhere in it is seen.
        let mut members: Map<String, Value> = serde_json::from_slice(text).ok()?;
        let id = RequestId::new(members.remove("id")?)?;
        let Value::String(method) = members.remove("method")? else { return None };
        let params = members.remove("params").filter(|params| !params.is_null());
        Some(Self { id, method, params })
    }
}

/// A message that answers no request.
pub(super) fn notification(method: &str, params: &impl Serialize) -> String {
    let (params, now) = (to_json(params), unix_ms());
    format!(r#"{{"method":"{method}","params":{params},"emittedAtMs":{now}}}"#)
}

/// Milliseconds since 1970.
pub(super) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use lastbyte_testkit::{Corpus, fuzz};

    use super::*;
    use crate::doors::rpc::success;

    fn id_of(text: &str) -> Option<String> {
        RpcRequest::parse(text.as_bytes()).map(|request| to_json(&request.id))
    }

    #[test]
    fn an_id_comes_back_as_it_came() {
        for id in ["1", "-5", r#""text""#, "9223372036854775807", r#""""#] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","extra":[1]}}"#);
            assert_eq!(id_of(&text).as_deref(), Some(id));
        }
    }

    /// A request is JSON with these members, and its answer is JSON with its id.
    #[test]
    fn no_message_does_harm() {
        let words = [
            "\"id\":",
            "\"method\":",
            "\"params\":",
            "null",
            "1e999",
            "-0",
            "\\ud800",
            "[",
            "{",
            "}",
            ",",
        ];
        fuzz(Corpus { name: "json-rpc", words: &words, ..Corpus::default() }, |text| {
            let request = RpcRequest::parse(text)?;
            let value: Value = serde_json::from_slice(text).unwrap();
            assert_eq!(value["method"], request.method);
            let answer: Value = serde_json::from_str(&success(&request.id, &1)).unwrap();
            assert_eq!(answer["id"], value["id"]);
            Some((value["id"].is_string(), request.method.len().min(9), request.params.is_some()))
        });
    }

    #[test]
    fn other_messages_are_not_requests() {
        let texts = [
            "",
            "{not json",
            "[]",
            r#"[{"id":1,"method":"m"}]"#,
            r#""text""#,
            "7",
            r#"{"id":null,"method":"m"}"#,
            r#"{"id":1.5,"method":"m"}"#,
            r#"{"id":9223372036854775808,"method":"m"}"#,
            r#"{"id":{},"method":"m"}"#,
            r#"{"method":"initialized"}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"id":1,"method":7}"#,
        ];
        for text in texts {
            assert_eq!(id_of(text), None, "{text}");
        }
        assert_eq!(RpcRequest::parse(b"{\"id\":1,\"method\":\"m\xff\"}"), None);
    }

    #[test]
    fn an_error_anywhere_in_the_text_makes_it_no_request() {
        for member in [&b"\"\xff\""[..], br#""\ud800""#, b"1e999", &b"[".repeat(200)] {
            let wrong = [&br#"{"id":1,"method":"m","unknown":"#[..], member, b"}"].concat();
            assert_eq!(RpcRequest::parse(&wrong), None, "{}", String::from_utf8_lossy(&wrong));
        }
    }

    #[test]
    fn the_last_of_two_members_with_one_name_wins() {
        assert_eq!(id_of(r#"{"id":1,"id":2,"method":"m","method":"n"}"#).as_deref(), Some("2"));
    }

    #[test]
    fn endless_nesting_is_not_a_request() {
        let deep = format!(r#"{{"id":1,"method":"m","params":{}"#, "[".repeat(100_000));
        assert_eq!(id_of(&deep), None);
    }
}
