//! One message a text frame.

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::OnUpgrade;
use tokio::sync::OwnedSemaphorePermit;
use tokio_tungstenite::tungstenite::Message;

use super::incoming::{Incoming, MOST_MESSAGE_BYTES};
use crate::doors::codex::closing::Progress;
use crate::doors::codex::connection::Connection;
use crate::doors::codex::door::Door;
use crate::doors::codex::outbox::{Outbox, Parcels};
use crate::doors::websocket::{self, Socket, Upgrade};

/// Answers a request to become a WebSocket, and serves it from then on. Needs a server that lets
/// connections be upgraded.
pub(in crate::doors::codex) fn upgrade<B>(door: &Door, mut request: Request<B>) -> Response<Body> {
    let Some(upgrade) = Upgrade::of(&mut request) else { return status(StatusCode::BAD_REQUEST) };
    let Some(seat) = door.seat() else { return status(StatusCode::SERVICE_UNAVAILABLE) };
    let (response, upgrade) = upgrade.into_parts();
    tokio::spawn(serve(door.clone(), upgrade, seat));
    response
}

/// An answer that says nothing but its status.
fn status(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}

async fn serve(door: Door, upgrade: OnUpgrade, seat: OwnedSemaphorePermit) {
    // A client that went away before it was upgraded has started nothing.
    let Some(socket) = websocket::open(upgrade, MOST_MESSAGE_BYTES).await else { return };
    let (sink, stream) = socket.split();
    let (outbox, parcels) = Outbox::new();
    let (progress, delivered) = Progress::new();
    let writer = tokio::spawn(write(sink, parcels, progress));
    Connection::new(door, Frames(stream), outbox, delivered).run().await;
    // What it has not written by now nobody waits for.
    writer.abort();
    drop(seat);
}

#[derive(Debug)]
struct Frames(SplitStream<Socket>);

impl Incoming for Frames {
    /// Frames that are no text are answered by the library or ignored.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.0.next().await?.ok()? {
                Message::Text(text) => return Some(text.as_bytes().to_vec()),
                Message::Close(_) => return None,
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }
}

/// Writes what comes until no more comes or the client does not take it.
async fn write(mut sink: SplitSink<Socket, Message>, mut parcels: Parcels, progress: Progress) {
    while let Some(parcel) = parcels.recv().await {
        let count = parcel.text.len();
        if sink.feed(Message::text(parcel.text)).await.is_err() {
            return;
        }
        // Messages that follow at once go out together.
        if parcels.is_empty() && sink.flush().await.is_err() {
            return;
        }
        progress.taken(count);
    }
    // The client may be gone.
    _ = sink.close().await;
}
