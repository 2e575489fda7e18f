//! The processes that a client is connected to by an open connection.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use lastbyte_engine::{Connected, Id, Process};

/// Shared by the requests of a connection, and gone with it. Has only processes that are stopped
/// when their clients are gone; the others need no record.
#[derive(Debug, Clone, Default)]
pub struct ClientOf(Arc<Mutex<HashMap<Id, Connected>>>);

impl ClientOf {
    /// The client has started this process or asked about it.
    pub(crate) fn add(&self, process: &Process) {
        let Some(connected) = process.connect() else { return };
        let mut processes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        processes.retain(|_, connected| connected.matters());
        processes.entry(process.id()).or_insert(connected);
    }
}
