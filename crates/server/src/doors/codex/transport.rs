//! Clients over HTTP, with one message per text frame of a WebSocket, or on a pair of streams.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use hyper::upgrade::OnUpgrade;
use tokio::sync::OwnedSemaphorePermit;

use super::connection::Connection;
use super::door::Door;
use crate::doors::rpc::websocket::{Binary, Setup, refuse_browsers};
use crate::doors::rpc::{self, MAX_MESSAGE_BYTES};
use crate::doors::websocket;
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

/// Needs a server that lets connections be upgraded.
async fn upgrade(State(door): State<Door>, mut request: Request) -> Response {
    let grant = request.extensions().get::<Grant>().cloned().unwrap_or_else(Grant::all);
    if let Err(error) = grant.check(Needs::Change) {
        return refusal(error);
    }
    let Some((response, upgrade)) = websocket::upgrade(&mut request) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let Some(permit) = door.connections.permit() else {
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
    let setup = Setup { binary: Binary::Ignored, ping: None };
    rpc::websocket::serve(socket, setup, grant.until_over(), |frames, send_queue, progress| {
        Connection::new(door, frames, send_queue, progress).run()
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
    rpc::lines::run(Connection::new(door.clone(), lines, send_queue, progress).run()).await;
    Ok(())
}
