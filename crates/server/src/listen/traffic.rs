//! Counts of connections and of refused requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lastbyte_wire::ErrorCode;

use super::slots::{Eviction, Kind, Slot, Slots};
use crate::Limits;

/// The slots of connections, and counts that only go up.
#[derive(Debug)]
pub struct Traffic {
    slots: Arc<Slots>,
    accepted: AtomicU64,
    rejected: AtomicU64,
    refusals: [AtomicU64; ErrorCode::ALL.len()],
}

impl Traffic {
    pub fn new(limits: &Limits) -> Self {
        Self {
            slots: Slots::new(limits),
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            refusals: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Open connections, including WebSockets.
    pub fn connections(&self) -> usize {
        self.slots.taken()
    }

    /// The most connections at one time, including the slots reserved for unix sockets.
    pub fn most_connections(&self) -> usize {
        self.slots.most(Kind::Unix)
    }

    /// Connections accepted so far.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Relaxed)
    }

    /// Connections rejected so far, or closed before their first request to make room for others.
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Relaxed)
    }

    /// Requests that were answered with an error, by its code.
    pub fn refusals(&self) -> impl Iterator<Item = (ErrorCode, u64)> {
        let counts = self.refusals.iter().map(|count| count.load(Relaxed));
        ErrorCode::ALL.iter().copied().zip(counts)
    }

    /// A slot for one more connection, for as long as it lives.
    pub(super) fn take_slot(&self, kind: Kind) -> Option<(Arc<Slot>, Eviction)> {
        let slot = self.slots.take(kind);
        let count = if slot.is_some() { &self.accepted } else { &self.rejected };
        count.fetch_add(1, Relaxed);
        slot
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// A connection has lost its slot to another.
    pub(super) fn count_evicted(&self) {
        self.rejected.fetch_add(1, Relaxed);
    }

    pub(super) fn count_refusal(&self, code: ErrorCode) {
        let index = ErrorCode::ALL.iter().position(|one| *one == code);
        if let Some(count) = index.and_then(|index| self.refusals.get(index)) {
            count.fetch_add(1, Relaxed);
        }
    }
}
