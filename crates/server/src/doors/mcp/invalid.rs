//! What is no message of the protocol, answered by a message that says why.
//!
//! rmcp answers some of it with text, and takes a tool call with invalid parameters for a method that it
//! does not know.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use serde_json::{Value, json};

/// The codes of JSON-RPC.
const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;

/// Longer than any text of rmcp.
const TEXT_BYTES: usize = 4 << 10;

/// A body that is not JSON.
pub(super) fn json(error: &serde_json::Error) -> Response<Body> {
    let text = format!("invalid JSON: {error}");
    answer(StatusCode::BAD_REQUEST, &Value::Null, PARSE_ERROR, &text)
}

/// A call whose parameters are not those of a call.
pub(super) fn tool_call(message: &Value) -> Option<Response<Body>> {
    if message["method"] != "tools/call" {
        return None;
    }
    let params = &message["params"];
    let arguments = &params["arguments"];
    let text = if !params["name"].is_string() {
        "`params.name` must be the name of a tool"
    } else if !arguments.is_null() && !arguments.is_object() {
        "`params.arguments` must be an object"
    } else {
        return None;
    };
    Some(answer(StatusCode::OK, &message["id"], INVALID_PARAMS, text))
}

/// A refusal in text as a message.
pub(super) async fn as_message(response: Response<Body>, message: &Value) -> Response<Body> {
    let status = response.status();
    let is_json = |kind: &HeaderValue| kind.as_bytes().starts_with(b"application/json");
    if !status.is_client_error()
        || response.headers().get(header::CONTENT_TYPE).is_some_and(is_json)
    {
        return response;
    }
    let text = to_bytes(response.into_body(), TEXT_BYTES).await.unwrap_or_default();
    answer(status, &message["id"], INVALID_REQUEST, &String::from_utf8_lossy(&text))
}

fn answer(status: StatusCode, id: &Value, code: i32, text: &str) -> Response<Body> {
    // An id is a string or a number.
    let id = if id.is_string() || id.is_number() { id } else { &Value::Null };
    let error = json!({ "code": code, "message": text });
    let body = json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string();
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    (status, [kind], body).into_response()
}
