//! What all connections share: the engine, the settings and the limits.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;

use lastbyte_engine::{Engine, Environment, Session};

use crate::doors::rpc::{Connections, Fault, login_shell};
use crate::doors::websocket::Messages;
use crate::{Limits, Sandboxing};

/// How the door is set up.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The directory of the server: commands run in it, or relative to it.
    pub cwd: PathBuf,
    /// Told to clients as `codexHome`.
    pub home: PathBuf,
    /// The base environment of commands, as the engine has it.
    pub environment: Environment,
    /// `SHELL` of commands on a terminal that would have none.
    pub login_shell: OsString,
    /// If its default policy has a workspace, that is the server's directory.
    pub sandboxing: Sandboxing,
    pub local_execution: LocalExecution,
}

/// Whether this server runs commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalExecution {
    Enabled,
    /// They are to run on another server, or nowhere: this one refuses them.
    Disabled,
}

/// The door to one engine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Door {
    pub(super) engine: Engine,
    pub(super) settings: Arc<Settings>,
    pub(super) connections: Connections,
    /// The session of everything that a client starts, if it is bound to one.
    pub(super) session: Option<Session>,
    /// The bound of messages that come over WebSockets.
    pub(super) messages: Messages,
}

impl Settings {
    pub fn new(cwd: impl Into<PathBuf>, home: impl Into<PathBuf>) -> Self {
        let environment = Environment::own();
        Self {
            cwd: cwd.into(),
            home: home.into(),
            local_execution: LocalExecution::from_environment(&environment),
            environment,
            login_shell: login_shell(),
            sandboxing: Sandboxing::default(),
        }
    }
}

impl LocalExecution {
    /// As Codex reads it: `CODEX_EXEC_SERVER_URL` is the address of a server that runs commands, or
    /// `none` to refuse them.
    pub fn from_environment(environment: &Environment) -> Self {
        let server = environment.get("CODEX_EXEC_SERVER_URL").and_then(OsStr::to_str);
        match server.map(str::trim) {
            None | Some("") => Self::Enabled,
            Some(_) => Self::Disabled,
        }
    }
}

impl Door {
    pub fn new(engine: Engine, settings: Settings) -> Self {
        Self {
            engine,
            settings: Arc::new(settings),
            connections: Connections::new(),
            session: None,
            messages: Messages::new(&Limits::default()),
        }
    }

    /// For a client that is bound to this session.
    pub(super) fn within(self, session: Option<Session>) -> Self {
        Self { session, ..self }
    }

    /// Closes every connection as if its client had gone, and waits until they are closed.
    pub async fn close(&self) {
        self.connections.close().await;
    }

    /// Waits until the door is closed.
    pub async fn closed(&self) {
        self.connections.closed().await;
    }

    /// Refuses to start a command if this server runs none.
    pub(super) fn require_local_execution(&self) -> Result<(), Fault> {
        match self.settings.local_execution {
            LocalExecution::Enabled => Ok(()),
            LocalExecution::Disabled => Err(Fault::internal("local environment is not configured")),
        }
    }

    /// A directory as a request names it: `~` is the server's home, and relative paths are relative
    /// to the server's directory.
    pub(super) fn directory(&self, named: &str) -> PathBuf {
        let Settings { cwd, environment, .. } = &*self.settings;
        let below_home =
            named.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/'));
        match (below_home, environment.get("HOME").filter(|home| !home.is_empty())) {
            (Some(rest), Some(home)) => cwd.join(home).join(rest.trim_start_matches('/')),
            (None, _) | (_, None) => cwd.join(named),
        }
    }
}
