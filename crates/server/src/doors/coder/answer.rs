//! Answers: an object, a refusal with its message, or the few that are not JSON.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};

use lastbyte_wire::Error;

use super::go_quote::quote;
use super::json_out::Object;

/// What a handler returns; an object is a success.
pub(super) type Answer = Result<Object, Refusal>;

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    status: StatusCode,
    /// What kind of conflict it is, for clients that give an `idempotency_key`.
    code: Option<&'static str>,
    message: String,
    /// For people: clients do not read it.
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

    pub(super) fn bad_json(fault: &serde_json::Error) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Request body must be valid JSON.").detail(fault)
    }

    /// An error of the server, or one of its limits.
    pub(super) fn from_error(error: &Error) -> Self {
        let status = StatusCode::from_u16(error.code.http_status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, "The request could not be carried out.").detail(&error.message)
    }

    /// Whether the server is at fault and not the client.
    pub(super) fn is_server_error(&self) -> bool {
        self.status.is_server_error()
    }

    pub(super) fn code(self, code: &'static str) -> Self {
        Self { code: Some(code), ..self }
    }

    pub(super) fn detail(self, detail: impl ToString) -> Self {
        Self { detail: Some(detail.to_string()), ..self }
    }
}

pub(super) fn response(answer: Answer) -> Response<Body> {
    let (status, object) = match answer {
        Ok(object) => (StatusCode::OK, object),
        Err(refusal) => (refusal.status, body(refusal)),
    };
    let kind = (header::CONTENT_TYPE, "application/json; charset=utf-8");
    with(status, object.finish(), &[kind])
}

fn body(refusal: Refusal) -> Object {
    let Refusal { status: _, code, message, detail } = refusal;
    let object = code.into_iter().fold(Object::new(), |object, code| object.text("code", code));
    let object = object.text("message", message);
    detail.into_iter().fold(object, |object, detail| object.text("detail", detail))
}

const PLAIN: (HeaderName, &str) = (header::CONTENT_TYPE, "text/plain; charset=utf-8");

/// There is no such route.
pub(super) fn not_found_page() -> Response<Body> {
    let headers = [PLAIN, (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    with(StatusCode::NOT_FOUND, "404 page not found\n", &headers)
}

/// The path has an invalid escape.
pub(super) fn bad_escape() -> Response<Body> {
    let headers = [PLAIN, (header::CONNECTION, "close")];
    with(StatusCode::BAD_REQUEST, "400 Bad Request", &headers)
}

/// The route supports another method, which is named unless this one is unknown.
pub(super) fn wrong_method(allowed: Option<&'static str>) -> Response<Body> {
    let allow = allowed.map(|method| (header::ALLOW, method));
    with(StatusCode::METHOD_NOT_ALLOWED, "", allow.as_slice())
}

fn with(
    status: StatusCode,
    body: impl Into<Body>,
    headers: &[(HeaderName, &'static str)],
) -> Response<Body> {
    let mut answer = Response::new(body.into());
    *answer.status_mut() = status;
    for (name, value) in headers {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}
