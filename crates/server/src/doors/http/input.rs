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
use crate::listen::body::collect;

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
    collect(body, &app.limits).await
}

/// A body as words. An empty one is an empty object.
pub(super) async fn json<T: DeserializeOwned>(app: &App, body: Body) -> Result<T, Error> {
    let bytes = bytes(app, body).await?;
    let text: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
    // A list would be taken field by field, whatever the fields are called.
    if text.trim_ascii_start().first().is_some_and(|first| *first == b'[') {
        return Err(invalid("the body does not make sense: it is a list, not an object"));
    }
    serde_json::from_slice(text).map_err(|error| {
        let what = match error.classify() {
            serde_json::error::Category::Data => "the body does not make sense",
            _ => "the body is not JSON",
        };
        invalid(format!("{what}: {error}"))
    })
}
