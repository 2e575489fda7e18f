//! Clients over HTTP, with one message per frame of a WebSocket, or on a pair of streams.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::upgrade::OnUpgrade;
use tokio::sync::OwnedSemaphorePermit;

use super::connection::{Connection, Transport};
use super::door::Door;
use crate::doors::rpc::websocket::{Binary, Setup, refuse_browsers};
use crate::doors::rpc::{self, MAX_MESSAGE_BYTES};
use crate::doors::websocket;
use crate::listen::random_text;

const SETUP: Setup = Setup { binary: Binary::Message, ping: Some(Duration::from_secs(30)) };

/// Where clients connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretPath(Arc<str>);

impl SecretPath {
    /// Only for clients that are told. Clients of this protocol cannot send a token.
    pub fn random() -> io::Result<Self> {
        Ok(Self(format!("/{}", random_text()?).into()))
    }

    /// For everybody who can reach the port.
    pub fn open() -> Self {
        Self("/".into())
    }

    /// What follows the address in the URL.
    pub fn suffix(&self) -> &str {
        self.0.trim_end_matches('/')
    }

    /// Takes as long for one wrong path as for another of the same length.
    fn is(&self, path: &str) -> bool {
        let differences =
            self.0.bytes().zip(path.bytes()).fold(0, |sum, (own, other)| sum | (own ^ other));
        self.0.len() == path.len() && differences == 0
    }
}

/// The WebSocket at this path, and the health page.
pub fn router(door: Door, path: SecretPath) -> Router {
    Router::new()
        .route("/readyz", get(StatusCode::OK))
        .fallback(upgrade)
        .layer(from_fn(refuse_browsers))
        .with_state((door, path))
}

/// Needs a server that lets connections be upgraded.
async fn upgrade(State((door, path)): State<(Door, SecretPath)>, mut request: Request) -> Response {
    if !path.is(request.uri().path()) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let Some((response, upgrade)) = websocket::upgrade(&mut request) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(permit) = door.connections.permit() else {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    };
    tokio::spawn(serve(door, upgrade, permit));
    response
}

async fn serve(door: Door, upgrade: OnUpgrade, permit: OwnedSemaphorePermit) {
    // A client that went away before it was upgraded has started nothing.
    let socket = websocket::open(upgrade, door.messages.clone(), MAX_MESSAGE_BYTES).await;
    let Some(socket) = socket else { return };
    rpc::websocket::serve(socket, SETUP, std::future::pending(), |frames, send_queue, progress| {
        Connection::new(door, Transport::WebSocket, frames, (send_queue, progress)).run()
    })
    .await;
    drop(permit);
}

/// Serves one client on these streams until its input ends. Must be called on a runtime.
pub async fn serve_lines(
    door: &Door,
    from: impl Read + Send + 'static,
    to: impl Write + AsFd + Send + 'static,
) -> io::Result<()> {
    let (lines, send_queue, progress) = rpc::lines::open(from, to)?;
    let client = (send_queue, progress);
    rpc::lines::run(Connection::new(door.clone(), Transport::Lines, lines, client).run()).await;
    Ok(())
}
