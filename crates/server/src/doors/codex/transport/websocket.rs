//! One message a text frame.

use axum::body::Body;
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::sync::OwnedSemaphorePermit;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::incoming::{Incoming, MOST_MESSAGE_BYTES};
use crate::doors::codex::closing::Progress;
use crate::doors::codex::connection::Connection;
use crate::doors::codex::door::Door;
use crate::doors::codex::outbox::{Outbox, Parcels};

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Answers a request to become a WebSocket, and serves it from then on. Needs a server that lets
/// connections be upgraded.
pub(in crate::doors::codex) fn upgrade<B>(door: &Door, mut request: Request<B>) -> Response<Body> {
    let Some(accept) = accept_key(&request) else { return status(StatusCode::BAD_REQUEST) };
    let Some(seat) = door.seat() else { return status(StatusCode::SERVICE_UNAVAILABLE) };
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(serve(door.clone(), upgrade, seat));
    let mut response = status(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(CONNECTION, axum::http::HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, axum::http::HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    response
}

/// An answer that says nothing but its status.
fn status(code: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response
}

/// What proves that the request was understood; `None` if it is not one for a WebSocket.
fn accept_key<B>(request: &Request<B>) -> Option<axum::http::HeaderValue> {
    let headers = request.headers();
    let asked = request.method() == Method::GET
        && has_word(headers, &CONNECTION, "upgrade")
        && has_word(headers, &UPGRADE, "websocket")
        && has_word(headers, &SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| asked)?;
    axum::http::HeaderValue::try_from(derive_accept_key(key.as_bytes())).ok()
}

fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let mut words = values.flat_map(|value| value.split(','));
    words.any(|found| found.trim().eq_ignore_ascii_case(word))
}

async fn serve(door: Door, upgrade: OnUpgrade, seat: OwnedSemaphorePermit) {
    // A client that went away before it was upgraded has started nothing.
    let Ok(upgraded) = upgrade.await else { return };
    let config = WebSocketConfig::default()
        .max_message_size(Some(MOST_MESSAGE_BYTES))
        .max_frame_size(Some(MOST_MESSAGE_BYTES));
    let io = TokioIo::new(upgraded);
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
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
