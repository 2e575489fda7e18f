//! Disk space reserved so that a journal can be compacted when the disk is full.

use std::fs;
use std::path::{Path, PathBuf};

use super::compaction::{remove_on_error, write_new};

/// A file beside the journal that nobody reads.
#[derive(Debug)]
pub(super) struct Reserve {
    path: PathBuf,
}

impl Reserve {
    /// 256 KiB.
    pub(super) const BYTES: u64 = 256 << 10;

    pub(super) fn beside(journal: &Path) -> Self {
        Self { path: journal.with_extension("reserve") }
    }

    pub(super) fn is_there(&self) -> bool {
        self.path.exists()
    }

    pub(super) fn set_aside(&self) {
        if !self.is_there() {
            // Without it the journal of a full disk cannot shrink, but still works.
            _ = remove_on_error(&self.path, write_new(&self.path, &vec![0; Self::BYTES as usize]));
        }
    }

    /// Frees the space, and returns whether there was any.
    pub(super) fn give_back(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }
}
