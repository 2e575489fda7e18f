//! What all connections share: the engine, the settings, the sessions and the limits.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_engine::{Engine, Environment};

use super::sessions::Sessions;
use crate::doors::rpc::{Connections, login_shell};
use crate::doors::websocket::Messages;
use crate::{Limits, Sandboxing};

/// How the door is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory of the server, which clients are told.
    pub cwd: PathBuf,
    /// The server's own, which a request may ask to inherit.
    pub environment: Environment,
    /// Clients run their commands by it.
    pub shell: OsString,
    pub sandboxing: Sandboxing,
    /// A program, with its arguments, that calls [`perform_file_request`](super::perform_file_request) on
    /// its standard streams. Without one, operations on files that are sent with a sandbox are refused.
    pub file_helper: Vec<OsString>,
    pub times: Times,
}

/// How long things are kept for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// A session without a connection, until it is stopped.
    pub detached: Duration,
    /// A process after `closed`.
    pub remembered: Duration,
}

impl Default for Times {
    /// As long as Codex.
    fn default() -> Self {
        Self { detached: Duration::from_secs(30), remembered: Duration::from_secs(30) }
    }
}

/// The door to one engine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Door {
    pub(super) engine: Engine,
    pub(super) settings: Arc<Settings>,
    pub(super) sessions: Sessions,
    pub(super) connections: Connections,
    /// The bound of messages that come over WebSockets.
    pub(super) messages: Messages,
}

impl Settings {
    pub fn new(cwd: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            environment: Environment::own(),
            shell: login_shell(),
            sandboxing: Sandboxing::default(),
            file_helper: Vec::new(),
            times: Times::default(),
        }
    }
}

impl Door {
    pub fn new(engine: Engine, settings: Settings) -> Self {
        Self {
            sessions: Sessions::new(engine.clone(), settings.times),
            engine,
            settings: Arc::new(settings),
            connections: Connections::new(),
            messages: Messages::new(&Limits::default()),
        }
    }

    /// Closes every connection, and waits until they are closed. What their clients started ends with
    /// the engine.
    pub async fn close(&self) {
        self.connections.close().await;
    }

    /// Waits until the door is closed.
    pub async fn closed(&self) {
        self.connections.closed().await;
    }
}
