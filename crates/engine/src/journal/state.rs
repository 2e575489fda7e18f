//! Which records of the journal are on disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether all records are on disk, for the next engine on the same state folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JournalState {
    /// Why records wait in memory, where a crash loses them; `None` when all are on disk.
    pub trouble: Option<String>,
    /// How many bytes of records wait.
    pub waiting_bytes: u64,
    /// How many times the file was gone and was written again.
    pub rewritten: u64,
}

/// Whether the records of one process are on disk.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// The number of the last record on disk; `None` without a journal.
    written: Option<Arc<AtomicU64>>,
    /// The number of its last record.
    last: AtomicU64,
}

impl Recorded {
    pub(super) fn new(written: Arc<AtomicU64>, last: u64) -> Self {
        Self { written: Some(written), last: AtomicU64::new(last) }
    }

    /// Another record of the process has this number.
    pub(super) fn append(&self, number: u64) {
        self.last.fetch_max(number, Ordering::AcqRel);
    }

    /// `None` without a journal.
    pub(crate) fn is_on_disk(&self) -> Option<bool> {
        let last = self.last.load(Ordering::Acquire);
        self.written.as_ref().map(|written| written.load(Ordering::Acquire) >= last)
    }
}
