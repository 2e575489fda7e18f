//! The protocols that offer the verbs, one folder each.

pub mod coder;
pub mod codex;
pub mod exec_server;
pub mod http;
mod rpc;
pub(crate) mod websocket;

use axum::Router;

use crate::App;

/// The native door, and the one for clients of Coder's agent in front of it.
pub fn router(app: App) -> Router {
    coder::router(app.clone()).merge(http::router(app))
}
