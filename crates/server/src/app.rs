//! What every door shares: the engine, the bounds and the wish to shut down.

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use lastbyte_engine::Engine;
use tokio::sync::Notify;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct App {
    pub engine: Engine,
    shutdown: Arc<Notify>,
}

/// What a server takes at most; each has an error that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {}

impl App {
    pub fn new(engine: Engine, _limits: Limits) -> Self {
        Self { engine, shutdown: Arc::new(Notify::new()) }
    }

    /// Somebody asks the server to go.
    pub fn ask_for_shutdown(&self) {
        self.shutdown.notify_one();
    }

    /// Waits until somebody does.
    pub async fn shutdown_asked(&self) {
        self.shutdown.notified().await;
    }
}

/// The routes of all doors.
pub fn router(app: App) -> Router {
    Router::new().route("/healthz", get(|| async { "{}" })).with_state(app)
}
