//! What every door shares: the engine, the bounds and the wish to shut down.

use std::sync::Arc;
use std::time::SystemTime;

use lastbyte_engine::{Engine, Id, Process};
use lastbyte_wire::{Error, ErrorCode};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use crate::Limits;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct App {
    pub engine: Engine,
    pub limits: Limits,
    pub started: SystemTime,
    waits: Arc<Semaphore>,
    shutdown: Arc<Notify>,
}

impl App {
    pub fn new(engine: Engine, limits: Limits) -> Self {
        Self {
            engine,
            limits,
            started: SystemTime::now(),
            waits: Arc::new(Semaphore::new(limits.waits)),
            shutdown: Arc::new(Notify::new()),
        }
    }

    /// The process with this id, written exactly so.
    pub fn process(&self, id: &str) -> Result<Process, Error> {
        let parsed = id.parse::<Id>().ok().filter(|parsed| parsed.to_string() == id);
        let process = parsed.and_then(|id| self.engine.get(id));
        process.ok_or_else(|| {
            Error::new(ErrorCode::ProcessNotFound, format!("there is no process {id}"))
                .hint("GET /v1/processes lists those there are")
        })
    }

    /// Counts a request as waiting for as long as the permit lives.
    pub fn begin_wait(&self) -> Result<OwnedSemaphorePermit, Error> {
        Arc::clone(&self.waits).try_acquire_owned().map_err(|_| {
            let most = self.limits.waits;
            let message = format!("{most} requests are waiting already, as many as are taken");
            Error::new(ErrorCode::TooManyWaits, message).hint("ask again in a moment")
        })
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
