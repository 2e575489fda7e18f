//! Server-sent events: an answer that has no end of its own.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, Response, header};
use futures_core::Stream;
use lastbyte_wire::{Error, head};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::from_wire::invalid;

/// A proxy or a client that hears nothing for long gives up.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Where events come from.
pub(super) trait Events: Send + 'static {
    /// Waits for some, written out; `None` when there will be no more. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Option<String>> + Send;
}

/// An answer of these events.
pub(super) fn answer(events: impl Events) -> Response<Body> {
    // One piece is under way while the client takes the one before; nobody else waits for it.
    let (sender, pieces) = mpsc::channel(1);
    tokio::spawn(tell(events, sender));
    let mut answer = Response::new(Body::from_stream(Pieces(pieces)));
    let kind = HeaderValue::from_static("text/event-stream");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// The id of the event that the client saw last, if it says so. One that is no text is not taken
/// for none, which would leave out all events in between.
pub(super) fn last_event_id(headers: &HeaderMap) -> Result<Option<&str>, Error> {
    let id = headers.get(head::LAST_EVENT_ID).map(HeaderValue::to_str).transpose();
    id.map_err(|_| invalid("the `Last-Event-ID` is not the id of an event: it is not ASCII"))
}

/// One event.
pub(super) fn event(
    id: Option<&dyn std::fmt::Display>,
    name: &str,
    data: &impl Serialize,
) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    let data = serde_json::to_string(data).expect("words of the API are JSON");
    format!("{id}event: {name}\ndata: {data}\n\n")
}

/// Ends when the events do, or when the client has gone.
async fn tell(mut events: impl Events, pieces: mpsc::Sender<Bytes>) {
    // Said at once, so that the client knows that it is listening.
    let mut piece = Bytes::from_static(b":\n\n");
    while pieces.send(piece).await.is_ok() {
        let next = tokio::select! {
            next = timeout(KEEP_ALIVE, events.next()) => next,
            () = pieces.closed() => return,
        };
        piece = match next {
            Ok(Some(text)) => text.into(),
            Ok(None) => return,
            Err(_) => Bytes::from_static(b":\n\n"),
        };
    }
}

struct Pieces(mpsc::Receiver<Bytes>);

impl Stream for Pieces {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|piece| piece.map(Ok))
    }
}
