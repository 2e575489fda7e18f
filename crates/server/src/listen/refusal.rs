//! An error as an HTTP answer.

use super::failed_tokens::WINDOW;
use axum::Extension;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use lastbyte_wire::{Error, ErrorBody, ErrorCode};

/// `{"error":{…}}` with the status of its code.
pub fn refusal(error: Error) -> Response<Body> {
    let code = error.code;
    let status =
        StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // Words and numbers always have a JSON form.
    let json = serde_json::to_vec(&ErrorBody { error }).unwrap_or_default();
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // The extension is for the counts of refusals.
    let mut response = (status, Extension(code), [kind], json).into_response();
    if code == ErrorCode::TooManyFailedTokens {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(WINDOW.as_secs()));
    }
    if code == ErrorCode::Unauthorized {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_token_is_asked_for() {
        let response = refusal(Error::new(ErrorCode::Unauthorized, "no token"));
        assert_eq!(response.status(), 401);
        assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
        assert_eq!(response.headers()[header::CONTENT_TYPE], "application/json");
        let other = refusal(Error::new(ErrorCode::UnknownHost, "no such host"));
        assert_eq!(other.status(), 421);
        assert_eq!(other.headers().get(header::WWW_AUTHENTICATE), None);
    }
}
