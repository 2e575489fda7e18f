//! Space that is set aside on the disk, so that a journal can shrink where there is none left.

use std::fs;
use std::path::{Path, PathBuf};

use super::compaction::{or_remove, write_new};

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
            // Without it a full disk stays full a little longer.
            _ = or_remove(&self.path, write_new(&self.path, &vec![0; Self::BYTES as usize]));
        }
    }

    /// Says whether there was any.
    pub(super) fn give_back(&self) -> bool {
        fs::remove_file(&self.path).is_ok()
    }
}
