//! A client over a WebSocket, with one message per frame.

use std::pin::{Pin, pin};
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::ORIGIN;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::tungstenite::Message;

use super::Incoming;
use super::send_queue::{self, OutgoingMessages, Progress, SendQueue};
use crate::doors::websocket::WebSocket;

/// How a protocol uses its WebSockets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) binary: Binary,
    /// How often the client gets a ping.
    pub(crate) ping: Option<Duration>,
}

/// What a binary frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    /// A message, like a text frame.
    Message,
    Ignored,
}

/// Serves a client by a connection that is made of its messages and the way to it, until the connection
/// ends. It gets no more messages when `over` is ready.
pub(crate) async fn serve<C: Future<Output = ()>>(
    socket: WebSocket,
    setup: Setup,
    over: impl Future<Output = ()> + Send + 'static,
    connection: impl FnOnce(Frames, SendQueue, Progress) -> C,
) {
    let (sink, stream) = socket.split();
    let (send_queue, outgoing, progress) = send_queue::channel();
    let frames = Frames { stream, binary: setup.binary, over: Box::pin(over) };
    let mut connection = pin!(connection(frames, send_queue, progress));
    // On one task, as the socket demands. What is not written when the connection ends is dropped.
    tokio::select! {
        () = connection.as_mut() => {}
        () = write(sink, outgoing, setup.ping) => connection.await,
    }
}

/// Only browsers send an `Origin`, and no page has any business here, whatever site it is from.
pub(crate) async fn refuse_browsers(request: Request, next: Next) -> Response {
    if request.headers().contains_key(ORIGIN) {
        return StatusCode::FORBIDDEN.into_response();
    }
    next.run(request).await
}

/// The messages of a client.
pub(crate) struct Frames {
    stream: SplitStream<WebSocket>,
    binary: Binary,
    /// The client's token is no longer valid.
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Incoming for Frames {
    /// Control frames are answered by the library.
    async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let next = tokio::select! {
                next = self.stream.next() => next,
                () = self.over.as_mut() => return None,
            };
            match next?.ok()? {
                Message::Text(text) => return Some(text.as_bytes().to_vec()),
                Message::Binary(bytes) if self.binary == Binary::Message => {
                    return Some(bytes.to_vec());
                }
                Message::Close(_) => return None,
                Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
    }
}

/// Writes messages until there are no more or the client does not take them.
async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    mut outgoing: OutgoingMessages,
    ping: Option<Duration>,
) {
    let mut ping_at = ping.map(|ping| Instant::now() + ping);
    loop {
        let message = tokio::select! {
            message = outgoing.messages.recv() => message,
            () = until(ping_at) => {
                ping_at = ping.map(|ping| Instant::now() + ping);
                if sink.send(Message::Ping(Bytes::new())).await.is_err() {
                    return;
                }
                continue;
            }
        };
        let Some(message) = message else { break };
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

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}
