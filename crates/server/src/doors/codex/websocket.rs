//! Clients over HTTP: the routes, and a WebSocket with one message per text frame.

use std::pin::{Pin, pin};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::ORIGIN;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::OnUpgrade;
use tokio::sync::OwnedSemaphorePermit;
use tokio_tungstenite::tungstenite::Message;

use super::connection::{Connection, Incoming, MAX_MESSAGE_BYTES};
use super::door::Door;
use super::send_queue::{self, OutgoingMessages};
use crate::doors::websocket::{self, WebSocket};
use crate::listen::{Grant, Needs, refusal};

/// For a server without other doors: every path becomes a WebSocket, except its health pages.
pub fn router(door: Door) -> Router {
    Router::new()
        .route("/readyz", get(StatusCode::OK))
        .route("/healthz", get(StatusCode::OK))
        .fallback(upgrade)
        .layer(from_fn(refuse_browsers))
        .with_state(door)
}

/// Where a server that has other doors, too, offers a WebSocket.
const ROUTES: [&str; 1] = ["/codex"];

/// The path of every route of [`route`].
pub fn offered() -> impl Iterator<Item = &'static str> {
    ROUTES.into_iter()
}

/// For a server that has other doors, too: `/codex` becomes a WebSocket.
pub fn route(door: Door) -> Router {
    let add = |router: Router<Door>, path| router.route(path, any(upgrade));
    let routes = offered().fold(Router::new(), add);
    routes.route_layer(from_fn(refuse_browsers)).with_state(door)
}

/// Only browsers send an `Origin`, and no page has any business here, whatever site it is from.
async fn refuse_browsers(request: Request, next: Next) -> Response {
    if request.headers().contains_key(ORIGIN) {
        return StatusCode::FORBIDDEN.into_response();
    }
    next.run(request).await
}

/// Needs a server that lets connections be upgraded.
async fn upgrade(State(door): State<Door>, mut request: Request) -> Response {
    let grant = request.extensions().get::<Grant>().cloned().unwrap_or_else(Grant::all);
    if let Err(error) = grant.scope.check(Needs::Change) {
        return refusal(error);
    }
    let Some((response, upgrade)) = websocket::upgrade(&mut request) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(permit) = door.connection_permit() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    let door = door.within(grant.scope.within().cloned());
    tokio::spawn(serve(door, upgrade, grant, permit));
    response
}

async fn serve(door: Door, upgrade: OnUpgrade, grant: Grant, permit: OwnedSemaphorePermit) {
    // A client that went away before it was upgraded has started nothing.
    let socket = websocket::open(upgrade, door.messages.clone(), MAX_MESSAGE_BYTES).await;
    let Some(socket) = socket else { return };
    let (sink, stream) = socket.split();
    let (send_queue, outgoing, progress) = send_queue::channel();
    let frames = Frames { stream, over: Box::pin(grant.until_over()) };
    let mut connection = pin!(Connection::new(door, frames, send_queue, progress).run());
    // On one task, as the socket demands. What is not written when the connection ends is dropped.
    tokio::select! {
        () = connection.as_mut() => {}
        () = write(sink, outgoing) => connection.await,
    }
    drop(permit);
}

struct Frames {
    stream: SplitStream<WebSocket>,
    /// The client's token is no longer valid.
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Incoming for Frames {
    /// Control frames are answered by the library; binary ones are ignored.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let next = tokio::select! {
                next = self.stream.next() => next,
                () = self.over.as_mut() => return None,
            };
            match next?.ok()? {
                Message::Text(text) => return Some(text.as_bytes().to_vec()),
                Message::Close(_) => return None,
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }
}

/// Writes messages until there are no more or the client does not take them.
async fn write(mut sink: SplitSink<WebSocket, Message>, mut outgoing: OutgoingMessages) {
    while let Some(message) = outgoing.messages.recv().await {
        let count = message.text.len();
        if sink.feed(Message::text(message.text)).await.is_err() {
            return;
        }
        // Messages that are ready together are sent together.
        if outgoing.messages.is_empty() && sink.flush().await.is_err() {
            return;
        }
        outgoing.delivered(count);
    }
    // The client may be gone.
    _ = sink.close().await;
}
