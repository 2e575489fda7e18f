//! The disk space of all logs together, and a notification when it is too much.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// The account of one engine. Every log keeps its own share up to date.
#[derive(Debug)]
pub(crate) struct Disk {
    used: AtomicU64,
    most: u64,
    /// Notified when a log has ended or space is short: time to sweep.
    sweeper: Arc<Notify>,
}

/// The space of one log; released when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    disk: Arc<Disk>,
    bytes: AtomicU64,
}

impl Disk {
    pub(crate) fn new(most: u64, sweeper: Arc<Notify>) -> Self {
        Self { used: AtomicU64::new(0), most, sweeper }
    }

    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { disk: Arc::clone(self), bytes: AtomicU64::new(0) }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// How many bytes are over the limit.
    pub(crate) fn excess(&self) -> u64 {
        self.used().saturating_sub(self.most)
    }
}

impl Share {
    /// Sets the current size of the log.
    pub(crate) fn set(&self, bytes: u64) {
        let before = self.bytes.swap(bytes, Ordering::Relaxed);
        // Wrapping: a shrinking log adds a negative number.
        self.disk.used.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
        if bytes > before && self.disk.excess() > 0 {
            self.disk.sweeper.notify_one();
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}
