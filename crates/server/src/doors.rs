//! The protocols that offer the verbs, one folder each.

pub mod coder;
pub mod codex;
pub mod exec_server;
pub mod http;
pub mod mcp;
mod rpc;
pub(crate) mod websocket;

use axum::Router;

use crate::App;

/// The native door, and in front of it those for clients of Coder's agent and for agents.
pub fn router(app: App) -> Router {
    coder::router(app.clone()).merge(mcp::router(app.clone())).merge(http::router(app))
}
