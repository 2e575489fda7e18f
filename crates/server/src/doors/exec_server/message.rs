//! What a client sends. Stricter than JSON-RPC asks for: a member that comes twice is an error.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::doors::rpc::RequestId;

#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: RequestId,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
    },
    /// To a request that nobody has sent.
    Answer,
}

#[derive(Deserialize)]
struct Members {
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    error: Option<Value>,
}

/// Keeps `null` apart from a member that is not there.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

impl Message {
    /// Or what is wrong with it.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let members: Members = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        let Members { id, method, params, result, error } = members;
        let id = id.map(|id| RequestId::new(id).ok_or("the id is neither a text nor an integer"));
        match (id.transpose()?, method) {
            (Some(id), Some(method)) => Ok(Self::Request { id, method, params }),
            (None, Some(method)) => Ok(Self::Notification { method }),
            (Some(_), None) if result.is_some() || error.is_some() => Ok(Self::Answer),
            (_, None) => Err("neither a request nor a notification nor an answer".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use lastbyte_testkit::{Corpus, fuzz};
    use serde_json::json;

    use super::*;

    /// What is taken is a JSON object; what is refused is refused with a reason.
    #[test]
    fn no_message_does_harm() {
        let words = [
            "\"id\":",
            "\"method\":",
            "\"params\":",
            "\"result\":",
            "\"error\":",
            "null",
            "1e999",
            "{",
            "}",
            ",",
        ];
        fuzz(Corpus { name: "exec-server", words: &words, ..Corpus::default() }, |text| {
            let message = Message::parse(text);
            match &message {
                Ok(_) => assert!(
                    serde_json::from_slice::<Value>(text).is_ok_and(|value| value.is_object())
                ),
                Err(why) => assert!(!why.is_empty()),
            }
            message.map(|message| std::mem::discriminant(&message)).map_err(|why| why.len())
        });
    }

    #[test]
    fn messages_are_told_apart() {
        let request = Message::parse(br#"{"jsonrpc":"2.0","id":"a","method":"m","more":[1]}"#);
        let id = RequestId::new(json!("a")).unwrap();
        assert_eq!(request, Ok(Message::Request { id, method: "m".into(), params: Value::Null }));
        let notification = Message::parse(br#"{"method":"m","params":{}}"#);
        assert_eq!(notification, Ok(Message::Notification { method: "m".into() }));
        for answer in [r#"{"id":1,"result":null}"#, r#"{"id":1,"error":{}}"#] {
            assert_eq!(Message::parse(answer.as_bytes()), Ok(Message::Answer));
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "",
            "{not json",
            "[]",
            "7",
            "{}",
            r#"{"id":1}"#,
            r#"{"id":null,"method":"m"}"#,
            r#"{"id":1.5,"method":"m"}"#,
            r#"{"id":true,"method":"m"}"#,
            r#"{"id":1,"method":5}"#,
            r#"{"id":1,"id":2,"method":"m"}"#,
            r#"{"id":1,"method":"m"} x"#,
        ] {
            assert!(Message::parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Message::parse(b"{\"id\":1,\"method\":\"\xff\"}").is_err());
    }
}
