//! What has come to a server and what became of it, as numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lastbyte_wire::ErrorCode;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::Limits;

/// The places of connections, and counts that only go up.
#[derive(Debug)]
pub struct Traffic {
    places: Arc<Semaphore>,
    most: usize,
    accepted: AtomicU64,
    turned_away: AtomicU64,
    refusals: [AtomicU64; ErrorCode::ALL.len()],
}

impl Traffic {
    pub fn new(limits: &Limits) -> Self {
        Self {
            places: Arc::new(Semaphore::new(limits.connections)),
            most: limits.connections,
            accepted: AtomicU64::new(0),
            turned_away: AtomicU64::new(0),
            refusals: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Connections that have a place, those that became a WebSocket among them.
    pub fn connections(&self) -> usize {
        self.most.saturating_sub(self.places.available_permits())
    }

    /// How many can have one at one time.
    pub fn most_connections(&self) -> usize {
        self.most
    }

    /// Connections that were given a place.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Connections for which there was none.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Relaxed)
    }

    /// Requests that were answered with an error, by its code.
    pub fn refusals(&self) -> impl Iterator<Item = (ErrorCode, u64)> {
        let counts = self.refusals.iter().map(|count| count.load(Relaxed));
        ErrorCode::ALL.iter().copied().zip(counts)
    }

    /// A place for one more connection, for as long as the permit lives.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok();
        let count = if place.is_some() { &self.accepted } else { &self.turned_away };
        count.fetch_add(1, Relaxed);
        place
    }

    pub(super) fn count_refusal(&self, code: ErrorCode) {
        let place = ErrorCode::ALL.iter().position(|one| *one == code);
        if let Some(count) = place.and_then(|place| self.refusals.get(place)) {
            count.fetch_add(1, Relaxed);
        }
    }
}
