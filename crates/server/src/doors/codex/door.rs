//! What all connections of this door have in common.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use lastbyte_engine::{Engine, Environment};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::login_shell::login_shell;
use crate::Sandboxing;

/// What the door is told when it is made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where commands run, and what their relative directories are relative to.
    pub cwd: PathBuf,
    /// What clients are told as the server's home.
    pub home: PathBuf,
    /// The base environment of commands, as the engine has it.
    pub environment: Environment,
    /// `SHELL` of a command on a terminal that would have none.
    pub login_shell: OsString,
    /// A workspace of its default is the server's directory, too.
    pub sandboxing: Sandboxing,
    pub streaming: Streaming,
}

/// Whether the back-end can hand out output while a command runs, and reach it meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streaming {
    Supported,
    /// It gives whole results with the default limits, and nothing else.
    Unsupported,
}

/// The door to one engine. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Door {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    engine: Engine,
    settings: Settings,
    open: watch::Sender<bool>,
    seats: Arc<Semaphore>,
}

/// Far more than clients there are; each has some descriptors.
const MOST_CONNECTIONS: u32 = 1024;

impl Settings {
    pub fn new(cwd: impl Into<PathBuf>, home: impl Into<PathBuf>) -> Self {
        Self {
            cwd: cwd.into(),
            home: home.into(),
            environment: Environment::own(),
            login_shell: login_shell(),
            sandboxing: Sandboxing::default(),
            streaming: Streaming::Supported,
        }
    }
}

impl Door {
    pub fn new(engine: Engine, settings: Settings) -> Self {
        let inner = Inner {
            engine,
            settings,
            open: watch::Sender::new(true),
            seats: Arc::new(Semaphore::new(MOST_CONNECTIONS as usize)),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Ends every connection as if its client had gone, and waits until they are over.
    pub async fn close(&self) {
        self.inner.open.send_replace(false);
        // Nobody closes the semaphore, so this ends with every seat empty.
        _ = self.inner.seats.acquire_many(MOST_CONNECTIONS).await;
    }

    /// Waits until the door is closed.
    pub async fn closed(&self) {
        // The sender is here, so this only ever ends with the door closed.
        _ = self.inner.open.subscribe().wait_for(|open| !open).await;
    }

    /// A place for one more connection, kept while it lasts; `None` when there are too many.
    pub(super) fn seat(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.inner.seats).try_acquire_owned().ok()
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.inner.settings
    }
}
