//! Slots for connections: which connections get one, and which are closed when there are too few;
//! and counts of connections and of refused requests.
//!
//! A connection is unproved until a request on it passes the gate. When no slot is free, the oldest
//! unproved connection is closed, so that idle connections keep no client out. Some slots are
//! reserved for unix sockets, so that the server's own user can always connect.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastbyte_wire::ErrorCode;
use tokio::sync::{Notify, oneshot};

use crate::Limits;

/// How a client connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Unix,
    Tcp,
}

/// All slots of a server, and counts that only go up.
#[derive(Debug)]
pub struct Traffic {
    most: usize,
    reserved: usize,
    table: Mutex<SlotTable>,
    /// A connection has been closed since the last look.
    closed: Notify,
    accepted: AtomicU64,
    rejected: AtomicU64,
    refusals: [AtomicU64; ErrorCode::ALL.len()],
}

#[derive(Debug, Default)]
struct SlotTable {
    taken: usize,
    next: u64,
    /// By age.
    unproved: BTreeMap<u64, Unproved>,
}

#[derive(Debug)]
struct Unproved {
    kind: Kind,
    evict: oneshot::Sender<()>,
}

/// The slot of one connection, for as long as this lives.
#[derive(Debug)]
pub(super) struct Slot {
    traffic: Arc<Traffic>,
    number: u64,
    proved: AtomicBool,
}

impl Traffic {
    pub fn new(limits: &Limits) -> Self {
        Self {
            most: limits.connections,
            reserved: limits.reserved_connections,
            table: Mutex::default(),
            closed: Notify::new(),
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            refusals: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Open connections, including WebSockets.
    pub fn connections(&self) -> usize {
        self.table().taken
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

    /// The most connections at one time.
    pub(crate) fn most(&self, kind: Kind) -> usize {
        match kind {
            Kind::Unix => self.most + self.reserved,
            Kind::Tcp => self.most,
        }
    }

    /// A slot for one more connection, if necessary that of an unproved one; and what tells when it
    /// has to be given up in its turn.
    pub(super) fn take(self: &Arc<Self>, kind: Kind) -> Option<(Arc<Slot>, oneshot::Receiver<()>)> {
        let mut table = self.table();
        let missing = (table.taken + 1).saturating_sub(self.most(kind));
        // Evict none if there would still be no slot.
        if missing > 0 && table.evictable_for(kind) < missing {
            self.rejected.fetch_add(1, Relaxed);
            return None;
        }
        (0..missing).for_each(|_| _ = table.evict_for(kind));
        self.accepted.fetch_add(1, Relaxed);
        let number = table.next;
        table.next += 1;
        table.taken += 1;
        let (evict, evicted) = oneshot::channel();
        table.unproved.insert(number, Unproved { kind, evict });
        let slot = Slot { traffic: Arc::clone(self), number, proved: AtomicBool::new(false) };
        Some((Arc::new(slot), evicted))
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

    /// Closes an unproved connection to free its descriptor. `false` if all are proved.
    pub(super) fn free_descriptor(&self) -> bool {
        self.table().evict_for(Kind::Unix)
    }

    /// Waits until a connection has been closed since the last time. For one task.
    pub(super) async fn until_one_closed(&self) {
        self.closed.notified().await;
    }

    fn table(&self) -> MutexGuard<'_, SlotTable> {
        // Nothing panics while it holds the lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SlotTable {
    fn evictable_for(&self, kind: Kind) -> usize {
        let evictable = |one: &&Unproved| kind == Kind::Unix || one.kind == Kind::Tcp;
        self.unproved.values().filter(evictable).count()
    }

    /// Takes the slot of the oldest unproved TCP connection. A connection to a unix socket may also
    /// take that of another one to a unix socket.
    fn evict_for(&mut self, kind: Kind) -> bool {
        let tcp = self.unproved.iter().find(|(_, one)| one.kind == Kind::Tcp);
        let any = || self.unproved.iter().next().filter(|_| kind == Kind::Unix);
        let Some(number) = tcp.or_else(any).map(|(number, _)| *number) else { return false };
        if let Some(unproved) = self.unproved.remove(&number) {
            self.taken -= 1;
            // A connection that ends at this moment need not be told.
            _ = unproved.evict.send(());
        }
        true
    }
}

impl Slot {
    /// A request on this connection has passed the gate.
    pub(super) fn prove(&self) {
        if !self.proved.load(Relaxed) {
            let unproved = self.traffic.table().unproved.remove(&self.number);
            self.proved.store(unproved.is_some(), Relaxed);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut table = self.traffic.table();
        // The slot of an evicted connection is another's already.
        if self.proved.load(Relaxed) || table.unproved.remove(&self.number).is_some() {
            table.taken -= 1;
        }
        drop(table);
        self.traffic.closed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(connections: usize, reserved_connections: usize) -> Arc<Traffic> {
        let limits = Limits { connections, reserved_connections, ..Limits::default() };
        Arc::new(Traffic::new(&limits))
    }

    /// Whether it was told to go.
    fn is_evicted(eviction: &mut oneshot::Receiver<()>) -> bool {
        eviction.try_recv().is_ok()
    }

    #[test]
    fn the_oldest_unproved_connection_gives_up_its_slot() {
        let slots = slots(2, 0);
        let (first, mut first_eviction) = slots.take(Kind::Tcp).unwrap();
        let (second, mut second_eviction) = slots.take(Kind::Tcp).unwrap();
        first.prove();
        let (third, _third_eviction) = slots.take(Kind::Tcp).unwrap();
        assert!(!is_evicted(&mut first_eviction), "it is proved");
        assert!(is_evicted(&mut second_eviction));
        second.prove();
        drop(second);
        assert_eq!(slots.connections(), 2, "the third has the slot");
        third.prove();
        assert!(slots.take(Kind::Tcp).is_none(), "all are proved");
        drop((first, third));
        assert_eq!(slots.connections(), 0);
    }

    #[test]
    fn nobody_is_evicted_for_a_connection_that_gets_no_slot() {
        let slots = slots(2, 2);
        let (_waiting, mut eviction) = slots.take(Kind::Tcp).unwrap();
        let own: Vec<_> = (0..3).map(|_| slots.take(Kind::Unix).unwrap()).collect();
        own.iter().for_each(|(slot, _)| slot.prove());
        assert!(slots.take(Kind::Tcp).is_none(), "the unix socket has more than a port may");
        assert!(!is_evicted(&mut eviction));
    }

    #[test]
    fn a_unix_socket_has_slots_of_its_own() {
        let slots = slots(1, 1);
        let (tcp, _tcp_eviction) = slots.take(Kind::Tcp).unwrap();
        tcp.prove();
        let (unix, mut unix_eviction) = slots.take(Kind::Unix).unwrap();
        assert!(slots.take(Kind::Tcp).is_none(), "a port evicts nobody of the unix socket");
        assert!(!is_evicted(&mut unix_eviction));
        let (next, _next_eviction) = slots.take(Kind::Unix).unwrap();
        assert!(is_evicted(&mut unix_eviction), "an unproved one of its own kind goes");
        next.prove();
        assert!(slots.take(Kind::Unix).is_none());
        drop((tcp, unix, next));
        assert_eq!(slots.connections(), 0);
    }
}
