//! Readers that must not miss a byte: while the slowest of them is a quota behind, output waits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The pinned cursors of one process. Output past the lowest one is not dropped, and is not taken
/// in beyond the quota, so that the command waits instead.
#[derive(Debug, Clone)]
pub(crate) struct Pins {
    cursors: Arc<Mutex<Cursors>>,
    /// The lowest cursor, for the pump; `None` when nobody is pinned.
    floor: watch::Sender<Option<u64>>,
}

#[derive(Debug, Default)]
struct Cursors {
    next: u64,
    by_pin: BTreeMap<u64, u64>,
}

/// A cursor that holds the output back. Dropping it lets the output go.
#[derive(Debug)]
pub struct Pin {
    pins: Pins,
    number: u64,
}

impl Pins {
    pub(crate) fn new() -> Self {
        Self { cursors: Arc::default(), floor: watch::Sender::new(None) }
    }

    pub(crate) fn pin(&self, cursor: u64) -> Pin {
        let number = {
            let mut cursors = self.lock();
            cursors.next += 1;
            cursors.next
        };
        let pin = Pin { pins: self.clone(), number };
        pin.advance(cursor);
        pin
    }

    fn cursor(&self, number: u64) -> u64 {
        self.lock().by_pin.get(&number).copied().unwrap_or(u64::MAX)
    }

    /// The lowest pinned cursor.
    pub(crate) fn floor(&self) -> Option<u64> {
        *self.floor.borrow()
    }

    /// Waits until a log of this length is less than `most` ahead of every pin. Cancel-safe.
    pub(crate) async fn until_room(&self, len: u64, most: u64) {
        let mut floor = self.floor.subscribe();
        let room = |floor: &Option<u64>| floor.is_none_or(|floor| len.saturating_sub(floor) < most);
        // The sender is here, so this only ever ends with room.
        _ = floor.wait_for(room).await;
    }

    fn set(&self, change: impl FnOnce(&mut BTreeMap<u64, u64>)) {
        let mut cursors = self.lock();
        change(&mut cursors.by_pin);
        let floor = cursors.by_pin.values().min().copied();
        self.floor.send_if_modified(|old| std::mem::replace(old, floor) != floor);
    }

    fn lock(&self) -> MutexGuard<'_, Cursors> {
        // Every change is complete in itself.
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pin {
    /// Everything before this cursor has been read.
    pub fn advance(&self, cursor: u64) {
        self.pins.set(|by_pin| _ = by_pin.insert(self.number, cursor));
    }
}

impl Clone for Pin {
    /// Another pin at the same cursor.
    fn clone(&self) -> Self {
        self.pins.pin(self.pins.cursor(self.number))
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.pins.set(|by_pin| _ = by_pin.remove(&self.number));
    }
}
