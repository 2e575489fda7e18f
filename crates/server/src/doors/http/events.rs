//! `GET /v1/events`: the feed as server-sent events.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Response, Uri, header};
use futures_core::Stream;
use lastbyte_wire::{Gap, head};
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;

use super::answer::Answer;
use super::input;
use crate::App;
use crate::verbs::events::{Next, Only, Reading};

/// A proxy or a client that hears nothing for long gives up.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct EventsQuery {
    session: Option<String>,
    chat: Option<String>,
    /// For whoever cannot set a header.
    last_event_id: Option<String>,
}

pub(super) async fn read_events(State(app): State<App>, headers: HeaderMap, uri: Uri) -> Answer {
    let query: EventsQuery = input::query(&uri)?;
    let permit = app.begin_wait()?;
    let header = headers.get(head::LAST_EVENT_ID).and_then(|value| value.to_str().ok());
    let last = header.or(query.last_event_id.as_deref());
    let only = Only { session: query.session, chat: query.chat };
    let reading = Reading::new(&app, last, only)?;
    // One batch is under way while the client takes the one before; the feed waits for nobody.
    let (sender, pieces) = mpsc::channel(1);
    tokio::spawn(tell(reading, sender, permit));
    let mut answer = Response::new(Body::from_stream(Pieces(pieces)));
    let kind = HeaderValue::from_static("text/event-stream");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(answer)
}

/// Ends when the client has gone.
async fn tell(mut reading: Reading, pieces: mpsc::Sender<Bytes>, _permit: OwnedSemaphorePermit) {
    // Said at once, so that the client knows that it is listening.
    let mut piece = Bytes::from_static(b":\n\n");
    while pieces.send(piece).await.is_ok() {
        let next = tokio::select! {
            next = timeout(KEEP_ALIVE, reading.next()) => next,
            () = pieces.closed() => return,
        };
        piece = match next {
            Ok(next) => next.iter().map(piece_of).collect::<String>().into(),
            Err(_) => Bytes::from_static(b":\n\n"),
        };
    }
}

fn piece_of(next: &Next) -> String {
    match next {
        Next::Gap => format!("event: gap\ndata: {}\n\n", data(&Gap {})),
        Next::Event { id, event } => {
            let name = event.event.name();
            format!("id: {id}\nevent: {name}\ndata: {}\n\n", data(event))
        }
    }
}

fn data(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("words of the API are JSON")
}

struct Pieces(mpsc::Receiver<Bytes>);

impl Stream for Pieces {
    type Item = Result<Bytes, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|piece| piece.map(Ok))
    }
}
