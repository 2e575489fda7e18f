//! Becoming a WebSocket, for every door that speaks over one.

use axum::body::Body;
use axum::http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

pub(super) type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// A request to become a WebSocket that was understood.
#[derive(Debug)]
pub(super) struct Upgrade {
    /// To be given as the answer; the connection is a WebSocket when it was sent.
    response: Response<Body>,
    upgrade: OnUpgrade,
}

impl Upgrade {
    /// `None` if it is not one. Needs a server that lets connections be upgraded.
    pub(super) fn of<B>(request: &mut Request<B>) -> Option<Self> {
        let accept = accept_key(request)?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
        Some(Self { response, upgrade: hyper::upgrade::on(request) })
    }

    /// The answer, and what becomes of the connection behind it.
    pub(super) fn into_parts(self) -> (Response<Body>, OnUpgrade) {
        (self.response, self.upgrade)
    }
}

/// The socket that takes messages of so many bytes; `None` if the client went away before.
pub(super) async fn open(upgrade: OnUpgrade, most_bytes: usize) -> Option<Socket> {
    let config = WebSocketConfig::default()
        .max_message_size(Some(most_bytes))
        .max_frame_size(Some(most_bytes));
    let io = TokioIo::new(upgrade.await.ok()?);
    Some(WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await)
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
