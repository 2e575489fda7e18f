//! Readers that must not miss a byte: output waits while the slowest of them is a quota behind.

use std::collections::BTreeMap;

use tokio::sync::watch;

use crate::notes::Notes;

/// The pinned cursors of one process. Output past the lowest one is not dropped, and is not taken
/// in beyond the quota, so that the command waits instead.
#[derive(Debug, Clone)]
pub(crate) struct Holds {
    cursors: watch::Sender<Cursors>,
    notes: Notes,
}

#[derive(Debug, Default)]
struct Cursors {
    next: u64,
    by_hold: BTreeMap<u64, u64>,
}

/// A cursor that holds the output back until it is dropped.
#[derive(Debug)]
pub struct Hold {
    holds: Holds,
    number: u64,
}

impl Cursors {
    fn lowest(&self) -> Option<u64> {
        self.by_hold.values().min().copied()
    }
}

impl Holds {
    pub(crate) fn new(notes: Notes) -> Self {
        Self { cursors: watch::Sender::default(), notes }
    }

    pub(crate) fn hold(&self, cursor: u64) -> Hold {
        let number = self.change(|cursors| {
            cursors.next += 1;
            cursors.by_hold.insert(cursors.next, cursor);
            cursors.next
        });
        Hold { holds: self.clone(), number }
    }

    /// The lowest pinned cursor.
    pub(crate) fn floor(&self) -> Option<u64> {
        self.cursors.borrow().lowest()
    }

    /// Waits until a log of this length is less than `most` ahead of every hold. Cancel-safe.
    pub(crate) async fn until_within(&self, len: u64, most: u64) {
        let within = |cursors: &Cursors| {
            cursors.lowest().is_none_or(|lowest| len.saturating_sub(lowest) < most)
        };
        // The sender is here, so this ends only when it is so.
        _ = self.cursors.subscribe().wait_for(within).await;
    }

    /// Wakes the pump only if the lowest cursor has moved.
    fn change<T>(&self, act: impl FnOnce(&mut Cursors) -> T) -> T {
        let mut outcome = None;
        self.cursors.send_if_modified(|cursors| {
            let before = cursors.lowest();
            outcome = Some(act(cursors));
            let moved = cursors.lowest() != before;
            if moved {
                self.notes.note_floor(cursors.lowest());
            }
            moved
        });
        outcome.expect("send_if_modified calls it once")
    }
}

impl Hold {
    /// Everything before this cursor has been read.
    pub fn advance(&self, cursor: u64) {
        self.holds.change(|cursors| _ = cursors.by_hold.insert(self.number, cursor));
    }
}

impl Clone for Hold {
    /// Another hold at the same cursor.
    fn clone(&self) -> Self {
        let cursor = self.holds.cursors.borrow().by_hold.get(&self.number).copied();
        self.holds.hold(cursor.unwrap_or(u64::MAX))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.holds.change(|cursors| _ = cursors.by_hold.remove(&self.number));
    }
}
