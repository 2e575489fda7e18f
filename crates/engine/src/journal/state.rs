//! What is on disk of the journal, and what is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Whether what happens is on disk, for the next engine on the same state folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JournalState {
    /// Why records wait in memory, where a crash loses them; `None` when all are on disk.
    pub trouble: Option<String>,
    /// How many bytes of records wait.
    pub waiting_bytes: u64,
    /// How many times the file was gone, or another one was in its place, and it was written again.
    pub rewritten: u64,
}

/// The number of the last record that is on disk. 0 while the file is gone.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress(Arc<AtomicU64>);

/// Whether the records of one process are on disk.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// `None` without a journal.
    progress: Option<Progress>,
    /// The number of its last record.
    last: AtomicU64,
}

impl Progress {
    pub(super) fn set(&self, number: u64) {
        self.0.store(number, Ordering::Release);
    }
}

impl Recorded {
    pub(super) fn new(progress: Progress, last: u64) -> Self {
        Self { progress: Some(progress), last: AtomicU64::new(last) }
    }

    /// Another record of the process has this number.
    pub(super) fn append(&self, number: u64) {
        self.last.fetch_max(number, Ordering::AcqRel);
    }

    /// `None` without a journal.
    pub(crate) fn is_on_disk(&self) -> Option<bool> {
        let last = self.last.load(Ordering::Acquire);
        self.progress.as_ref().map(|on_disk| on_disk.0.load(Ordering::Acquire) >= last)
    }
}
