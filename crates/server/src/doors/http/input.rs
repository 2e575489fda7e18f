//! Requests: queries and bodies into words, with an error that says what is wrong where.

use axum::body::{Body, Bytes};
use axum::extract::Query;
use axum::http::Uri;
use lastbyte_wire::Error;
use serde::de::DeserializeOwned;

use crate::App;
use crate::from_wire::invalid;
use crate::listen::body::collect;

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
    serde_json::from_slice(text).map_err(|error| {
        let what = match error.classify() {
            serde_json::error::Category::Data => "the body does not make sense",
            _ => "the body is not JSON",
        };
        invalid(format!("{what}: {error}"))
    })
}
