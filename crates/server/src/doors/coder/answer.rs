//! Answers: JSON, a refusal with its message, or the few that are neither.

use axum::http::{StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use lastbyte_wire::Error;
use serde::Serialize;

use super::go_quote::quote;

/// What a handler returns.
pub(super) type Answer = Result<Response, Refusal>;

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Refusal {
    #[serde(skip)]
    pub(super) status: StatusCode,
    /// What kind of conflict it is, for clients that give an `idempotency_key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    message: String,
    /// For people: clients do not read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, code: None, message: message.into(), detail: None }
    }

    /// No such process, or one that this chat may not see.
    pub(super) fn not_found(id: &[u8]) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("Process {} not found.", quote(id)))
    }

    /// The token does not allow it.
    pub(super) fn forbidden(error: &Error) -> Self {
        let refusal = Self::new(StatusCode::FORBIDDEN, "The token does not allow this request.");
        refusal.code(error.code.as_str()).detail(&error.message)
    }

    pub(super) fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    pub(super) fn detail(self, detail: impl ToString) -> Self {
        Self { detail: Some(detail.to_string()), ..self }
    }
}

impl From<serde_json::Error> for Refusal {
    fn from(error: serde_json::Error) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Request body must be valid JSON.").detail(error)
    }
}

/// Of the server, or of one of its limits.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let status = StatusCode::from_u16(error.code.http_status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, "The request could not be carried out.").detail(error.message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        json(self.status, &self)
    }
}

/// A success.
pub(super) fn ok(answer: &impl Serialize) -> Answer {
    Ok(json(StatusCode::OK, answer))
}

/// Compact, members in the order of their declaration, and a newline as in Go's.
fn json(status: StatusCode, answer: &impl Serialize) -> Response {
    let mut body = serde_json::to_vec(answer).expect("texts and numbers are always JSON");
    body.push(b'\n');
    (status, [(header::CONTENT_TYPE, "application/json; charset=utf-8")], body).into_response()
}

const PLAIN: &str = "text/plain; charset=utf-8";

/// There is no such route.
pub(super) fn not_found_page() -> Response {
    let headers = [(header::CONTENT_TYPE, PLAIN), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    (StatusCode::NOT_FOUND, headers, "404 page not found\n").into_response()
}

/// The path has an invalid escape.
pub(super) fn bad_escape() -> Response {
    let headers = [(header::CONTENT_TYPE, PLAIN), (header::CONNECTION, "close")];
    (StatusCode::BAD_REQUEST, headers, "400 Bad Request").into_response()
}

/// The route supports another method, which is named unless this one is unknown.
pub(super) fn wrong_method(allowed: Option<&'static str>) -> Response {
    let allow = AppendHeaders(allowed.map(|method| (header::ALLOW, method)));
    (StatusCode::METHOD_NOT_ALLOWED, allow).into_response()
}
