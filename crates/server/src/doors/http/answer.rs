//! Answers: JSON, or an error with its status.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use lastbyte_wire::Error;
use serde::Serialize;

use crate::listen::refusal;
use crate::metrics::waited;

/// What a handler gives back.
pub(super) type Answer = Result<Response<Body>, Refusal>;

/// An error on its way out.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) Error);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        refusal(self.0)
    }
}

pub(super) fn ok(value: &impl Serialize) -> Answer {
    Ok(json(StatusCode::OK, value))
}

pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Response<Body> {
    let kind = HeaderValue::from_static("application/json");
    (status, [(header::CONTENT_TYPE, kind)], json_text(value)).into_response()
}

/// A value of the API as JSON.
pub(super) fn json_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("values of the API are JSON")
}

/// What a request that asked to wait is answered with: also a refusal took the time of a process.
pub(super) fn after_a_wait(answer: Answer) -> Answer {
    Ok(waited(answer.into_response()))
}
