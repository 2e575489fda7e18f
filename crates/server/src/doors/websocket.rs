//! Becoming a WebSocket, for every door that speaks over one.

mod bounded;
#[cfg(test)]
mod fuzz;

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Body;
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use axum::response::IntoResponse;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{Join, ReadHalf, WriteHalf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use bounded::Bounded;

pub(crate) use bounded::Messages;

/// A connection keeps this much for what it reads, also while it is idle.
const READ_BUFFER_BYTES: usize = 8 << 10;

/// A WebSocket that answers pings, and reads no more until the client has read the last answer.
/// tungstenite alone would queue an answer to every ping of a client that never reads.
///
/// Both directions must be polled by one task: there is one place for the waker of a writer.
pub(super) struct WebSocket {
    inner: WebSocketStream<Join<Bounded<ReadHalf<Io>>, WriteHalf<Io>>>,
    pong_due: bool,
}

type Io = TokioIo<Upgraded>;

impl WebSocket {
    /// What the client sends, no longer as messages.
    pub(super) fn into_reader(self) -> ReadHalf<Io> {
        self.inner.into_inner().into_inner().0.stream
    }
}

/// What a client is told of an error that it can do something about.
pub(super) fn told(error: &Error) -> Option<lastbyte_wire::Error> {
    match error {
        Error::Io(error) => error.get_ref()?.downcast_ref().cloned(),
        _ => None,
    }
}

impl Stream for WebSocket {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let bounded = self.inner.get_mut().reader_mut();
        // A reader that wants the next message is done with the last one.
        bounded.free_taken();
        if let Poll::Ready(error) = bounded.poll_late(context) {
            return Poll::Ready(Some(Err(Error::Io(error))));
        }
        if self.pong_due {
            match ready!(self.inner.poll_flush_unpin(context)) {
                Ok(()) => self.pong_due = false,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        let next = ready!(self.inner.poll_next_unpin(context));
        self.pong_due = matches!(next, Some(Ok(Message::Ping(_))));
        Poll::Ready(next)
    }
}

impl Sink<Message> for WebSocket {
    type Error = Error;

    fn poll_ready(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_ready_unpin(context)
    }

    fn start_send(mut self: Pin<&mut Self>, message: Message) -> Result<(), Error> {
        self.inner.start_send_unpin(message)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_flush_unpin(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.inner.poll_close_unpin(context)
    }
}

/// The answer to a request to become a WebSocket, and what becomes of the connection once it was
/// sent; `None` if it is not one. Needs a server that lets connections be upgraded.
pub(super) fn upgrade<B>(request: &mut Request<B>) -> Option<(Response<Body>, OnUpgrade)> {
    let headers = [
        (CONNECTION, HeaderValue::from_static("upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_ACCEPT, accept_key(request)?),
    ];
    let response = (StatusCode::SWITCHING_PROTOCOLS, headers).into_response();
    Some((response, hyper::upgrade::on(request)))
}

/// The socket that takes messages of up to this many bytes, when there is room for them; `None` if
/// the client went away before.
pub(super) async fn open(
    upgrade: OnUpgrade,
    messages: Messages,
    most_bytes: usize,
) -> Option<WebSocket> {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(Some(most_bytes));
    let (reader, writer) = tokio::io::split(TokioIo::new(upgrade.await.ok()?));
    let io = tokio::io::join(Bounded::new(reader, messages, most_bytes), writer);
    let inner = WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await;
    Some(WebSocket { inner, pong_due: false })
}

/// What proves that the request was understood; `None` if it is not one for a WebSocket.
fn accept_key<B>(request: &Request<B>) -> Option<HeaderValue> {
    let headers = request.headers();
    let asked = request.method() == Method::GET
        && has_word(headers, &CONNECTION, "upgrade")
        && has_word(headers, &UPGRADE, "websocket")
        && has_word(headers, &SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| asked)?;
    HeaderValue::try_from(derive_accept_key(key.as_bytes())).ok()
}

fn has_word(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let mut words = values.flat_map(|value| value.split(','));
    words.any(|found| found.trim().eq_ignore_ascii_case(word))
}
