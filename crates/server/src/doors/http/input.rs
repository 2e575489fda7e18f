//! Requests: queries and bodies into words, with an error that says what is wrong where.

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use lastbyte_engine::Process;
use lastbyte_wire::Error;
use serde::de::DeserializeOwned;

use super::answer::Refusal;
use crate::App;
use crate::from_wire::invalid;

/// The process that the path names.
pub(super) struct Target(pub(super) Process);

impl FromRequestParts<App> for Target {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refusal> {
        let id = match Path::<String>::from_request_parts(parts, app).await {
            Ok(Path(id)) => id,
            // What is no text is no id either.
            Err(_) => parts.uri.path().to_owned(),
        };
        Ok(Self(app.process(&id)?))
    }
}

/// The query of a request as words.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Error> {
    let query = Query::try_from_uri(uri);
    query.map(|Query(query)| query).map_err(|error| {
        // axum's own sentence comes first and says nothing.
        let cause = std::error::Error::source(&error).map_or(error.to_string(), <_>::to_string);
        invalid(format!("the query does not make sense: {cause}"))
    })
}

/// The whole body, within the bound.
pub(super) async fn bytes(app: &App, body: Body) -> Result<Bytes, Error> {
    app.body(body).await
}

/// A body as words. An empty one is an empty object.
pub(super) async fn json<T: DeserializeOwned>(app: &App, body: Body) -> Result<T, Error> {
    let bytes = bytes(app, body).await?;
    words("the body", if bytes.is_empty() { b"{}" } else { &bytes })
}

/// What somebody sent, which is `what`, as words.
pub(super) fn words<T: DeserializeOwned>(what: &str, text: &[u8]) -> Result<T, Error> {
    // A list would be taken field by field, whatever the fields are called.
    if text.trim_ascii_start().first().is_some_and(|first| *first == b'[') {
        return Err(invalid(format!("{what} does not make sense: it is a list, not an object")));
    }
    serde_json::from_slice(text).map_err(|error| {
        let not = match error.classify() {
            serde_json::error::Category::Data => "does not make sense",
            _ => "is not JSON",
        };
        invalid(format!("{what} {not}: {error}"))
    })
}
