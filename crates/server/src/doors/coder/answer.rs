//! Answers: an object, a refusal with its message, or the few that are not JSON.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};

use lastbyte_wire::Error;

use super::go_quote::quote;
use super::json_out::Object;
use super::request::Undecodable;

/// What a handler gives back; an object means that it went well.
pub(super) type Answer = Result<Object, Refusal>;

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    status: StatusCode,
    message: String,
    /// For people: clients do not read it.
    detail: Option<String>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), detail: None }
    }

    /// No such process, or none that this chat may know of.
    pub(super) fn not_found(id: &[u8]) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("Process {} not found.", quote(id)))
    }

    pub(super) fn bad_json(fault: &Undecodable) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "Request body must be valid JSON.").detail(fault)
    }

    /// Something went wrong here, or a bound of the server was met.
    pub(super) fn of(error: &Error) -> Self {
        let status = StatusCode::from_u16(error.code.http_status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, "The request could not be carried out.").detail(&error.message)
    }

    /// Whether it is the server's doing and not the client's.
    pub(super) fn is_ours(&self) -> bool {
        self.status.is_server_error()
    }

    pub(super) fn detail(self, detail: impl ToString) -> Self {
        Self { detail: Some(detail.to_string()), ..self }
    }
}

pub(super) fn response(answer: Answer) -> Response<Body> {
    let (status, object) = match answer {
        Ok(object) => (StatusCode::OK, object),
        Err(Refusal { status, message, detail }) => {
            let object = Object::new().text("message", message);
            (
                status,
                detail.into_iter().fold(object, |object, detail| object.text("detail", detail)),
            )
        }
    };
    let kind = (header::CONTENT_TYPE, "application/json; charset=utf-8");
    with(status, object.finish(), &[kind])
}

const PLAIN: (HeaderName, &str) = (header::CONTENT_TYPE, "text/plain; charset=utf-8");

/// There is nothing at this path.
pub(super) fn nowhere() -> Response<Body> {
    let headers = [PLAIN, (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];
    with(StatusCode::NOT_FOUND, "404 page not found\n", &headers)
}

/// The path has an escape that is none.
pub(super) fn bad_escape() -> Response<Body> {
    let headers = [PLAIN, (header::CONNECTION, "close")];
    with(StatusCode::BAD_REQUEST, "400 Bad Request", &headers)
}

/// The path takes another method, which is named unless this one is unheard of.
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
