//! The protocols that offer the verbs, one folder each.

pub mod coder;
pub mod codex;
pub mod exec_server;
pub mod http;
pub mod mcp;
pub mod page;
mod rpc;
pub(crate) mod websocket;

use axum::Router;

use crate::App;

/// The native door, and in front of it the page and those for clients of Coder's agent and for agents.
pub fn router(app: App) -> Router {
    let page = page::router();
    coder::router(app.clone()).merge(mcp::router(app.clone())).merge(page).merge(http::router(app))
}
