//! Queries and bodies as types of the API, with an error that says what is wrong where.

use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::Uri;
use axum::http::request::Parts;
use lastbyte_engine::Process;
use lastbyte_wire::{Error, ErrorCode};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::answer::Refusal;
use crate::App;
use crate::from_wire::invalid;
use crate::verbs::select::Finder;

/// What the routes share. A handler gets at it only as its client may see it.
#[derive(Debug, Clone)]
pub(super) struct Routed(App);

impl Routed {
    pub(super) fn new(app: App) -> Self {
        Self(app)
    }
}

/// What all verbs take, as the client of the request sees it.
pub(super) struct Caller(pub(super) App);

impl FromRequestParts<Routed> for Caller {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, routed: &Routed) -> Result<Self, Refusal> {
        let missing = || Refusal(Error::new(ErrorCode::Unauthorized, "missing token"));
        routed.0.seen_by(&parts.extensions).map(Self).ok_or_else(missing)
    }
}

/// The same for a route that needs no token.
pub(super) enum Anybody {
    Caller(App),
    Public(App),
}

impl FromRequestParts<Routed> for Anybody {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, routed: &Routed) -> Result<Self, Refusal> {
        let caller = routed.0.seen_by(&parts.extensions).map(Self::Caller);
        Ok(caller.unwrap_or_else(|| Self::Public(routed.0.clone())))
    }
}

/// The process that the path names.
pub(super) struct Target(pub(super) Process);

impl FromRequestParts<Routed> for Target {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, routed: &Routed) -> Result<Self, Refusal> {
        let Caller(app) = Caller::from_request_parts(parts, routed).await?;
        let id = match Path::<String>::from_request_parts(parts, routed).await {
            Ok(Path(id)) => id,
            // What is no text is no id either. It follows `/v1/processes/`.
            Err(_) => parts.uri.path().split('/').nth(3).unwrap_or_default().to_owned(),
        };
        Ok(Self(Finder::new(&app).find(&id)?))
    }
}

/// The query of a request.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Error> {
    let query = Query::try_from_uri(uri);
    query.map(|Query(query)| query).map_err(|error| {
        // The cause says more than axum's own message.
        let cause = std::error::Error::source(&error).map_or(error.to_string(), <_>::to_string);
        invalid(format!("invalid query: {}", in_plain_words(cause)))
    })
}

/// Replaces what the standard library says of a text that is not a number.
fn in_plain_words(mut cause: String) -> String {
    for (said, plain) in [
        ("invalid digit found in string", "expected a whole number"),
        ("cannot parse integer from empty string", "expected a whole number"),
        ("number too large to fit in target type", "the number is too large"),
    ] {
        if let Some(field) = cause.strip_suffix(said) {
            cause = format!("{field}{plain}");
        }
    }
    cause
}

/// A body as JSON. An empty one is an empty object.
pub(super) async fn json<T: DeserializeOwned>(app: &App, body: Body) -> Result<T, Error> {
    let bytes = app.body(body).await?;
    words("body", if bytes.is_empty() { b"{}" } else { &bytes })
}

/// Parses what a client sent; `what` names it in the error.
pub(super) fn words<T: DeserializeOwned>(what: &str, text: &[u8]) -> Result<T, Error> {
    // A list would be taken field by field, whatever the fields are called.
    if text.trim_ascii_start().first().is_some_and(|first| *first == b'[') {
        return Err(invalid(format!("invalid {what}: expected an object, got a list")));
    }
    serde_json::from_slice(text).map_err(|error| match error.classify() {
        Category::Data => {
            let field = wrong_field::<T>(text, &error).unwrap_or_default();
            invalid(format!("invalid {what}: {field}{error}"))
        }
        _ => invalid(format!("invalid JSON in the {what}: {error}")),
    })
}

/// The field that the error is about, unless the error names it. Parses again, because to know the field
/// costs time that a good request must not take.
fn wrong_field<T: DeserializeOwned>(text: &[u8], error: &serde_json::Error) -> Option<String> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let again = serde_path_to_error::deserialize::<_, T>(&mut json).err()?;
    again.path().iter().next()?;
    let field = format!("`{}`", again.path());
    (!error.to_string().contains(&field)).then(|| format!("{field}: "))
}
