//! The parts of messages. They have no `jsonrpc` member, in either direction.

use serde::Serialize;
use serde_json::Value;

use super::fault::Fault;

/// What a request is answered under: a string or an integer, given back as it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct RequestId(Value);

impl RequestId {
    /// `None` for what cannot be an id.
    pub(crate) fn new(id: Value) -> Option<Self> {
        (id.is_string() || id.is_i64()).then_some(Self(id))
    }
}

/// The answer to a request that succeeded.
pub(crate) fn success(id: &RequestId, result: &impl Serialize) -> String {
    format!(r#"{{"id":{},"result":{}}}"#, to_json(id), to_json(result))
}

/// The answer to a request that failed.
pub(crate) fn failure(id: &RequestId, error: &Fault) -> String {
    format!(r#"{{"error":{},"id":{}}}"#, to_json(error), to_json(id))
}

pub(crate) fn to_json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("texts, numbers and maps with text keys are always JSON")
}
