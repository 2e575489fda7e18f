//! Where clients come to over HTTP.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::ORIGIN;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::any;

use super::door::Door;
use super::transport::websocket::upgrade;

/// For a server that has no other door: every path becomes a WebSocket, but for its health pages.
pub fn router(door: Door) -> Router {
    Router::new()
        .route("/readyz", any(health))
        .route("/healthz", any(health))
        .fallback(to_websocket)
        .with_state(door)
}

/// For a server that has other doors, too: `/codex` becomes a WebSocket.
pub fn route(door: Door) -> Router {
    Router::new().route("/codex", any(to_websocket)).with_state(door)
}

async fn health(State(door): State<Door>, request: Request) -> Response {
    match is_of_a_page(&request) || request.method() != Method::GET {
        true => to_websocket(State(door), request).await,
        false => StatusCode::OK.into_response(),
    }
}

async fn to_websocket(State(door): State<Door>, request: Request) -> Response {
    match is_of_a_page(&request) {
        true => StatusCode::FORBIDDEN.into_response(),
        false => upgrade(&door, request),
    }
}

/// Pages of a browser have nothing to say here, whoever serves them.
fn is_of_a_page(request: &Request) -> bool {
    request.headers().contains_key(ORIGIN)
}
