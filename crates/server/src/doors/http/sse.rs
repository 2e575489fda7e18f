//! Server-sent events: an answer that has no end of its own.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Response, header};
use axum::response::IntoResponse;
use futures_util::{Stream, StreamExt, stream};
use lastbyte_wire::{Error, head};
use serde::Serialize;
use tokio::time::timeout;

use super::answer::json_text;
use crate::from_wire::invalid;

/// A proxy or a client that hears nothing for long gives up.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// An answer of these events, written out. The next one is made when the client has taken the one
/// before. `place` is the id that goes on from here before there is an event.
pub fn answer(
    place: Option<&str>,
    events: impl Stream<Item = String> + Send + 'static,
) -> Response<Body> {
    // Said at once, so that the client knows that it is listening. An id alone is no event.
    let greeting = place.map_or_else(|| ":\n\n".into(), |id| format!("id: {id}\n\n"));
    let greeting = stream::once(async { Ok::<_, Infallible>(Bytes::from(greeting)) });
    let told = stream::unfold(Box::pin(events), async |mut events| {
        let text = match timeout(KEEP_ALIVE, events.next()).await {
            Ok(Some(text)) => text.into(),
            Ok(None) => return None,
            Err(_) => Bytes::from_static(b":\n\n"),
        };
        Some((Ok(text), events))
    });
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(greeting.chain(told))).into_response()
}

/// The id of the event that the client saw last, if it says so. One that is no text is not taken
/// for none, which would leave out all events in between.
pub fn last_event_id(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let id = headers.get(head::LAST_EVENT_ID).map(HeaderValue::to_str).transpose();
    id.map_err(|_| invalid("invalid `Last-Event-ID`: it is not ASCII"))
}

/// One event.
pub(super) fn event(
    id: Option<&dyn std::fmt::Display>,
    name: &str,
    data: &impl Serialize,
) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: {name}\ndata: {}\n\n", json_text(data))
}
