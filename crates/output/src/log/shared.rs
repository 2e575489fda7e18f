//! What a writer and the readers of its log have in common, besides the files.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::ShortLog;
use super::memory::Tail;
use super::place::FileId;
use super::unwritten::Unwritten;

/// Made with the log, so that readers that were made before a failure find it too.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The whole log, if it was settled. Set before its file is given to another log.
    pub(super) short: OnceLock<Box<ShortLog>>,
    /// Which file it has, from the first byte on.
    pub(super) file: OnceLock<Option<FileId>>,
    /// Its file was removed or given back.
    without_file: AtomicBool,
    /// After the disk failed.
    pub(super) tail: Tail,
    pub(super) unwritten: Unwritten,
}

impl Shared {
    /// For a log without a file.
    pub(super) fn in_memory(short: ShortLog) -> Self {
        let (short, without_file) = (OnceLock::from(Box::new(short)), AtomicBool::new(true));
        Self { short, without_file, ..Self::default() }
    }

    pub(super) fn is_in_file(&self) -> bool {
        self.short.get().is_none() && !self.without_file.load(Ordering::Acquire)
    }

    /// Claims the file for removal or reuse: `true` for the first caller only.
    pub(super) fn let_go_of_file(&self) -> bool {
        !self.without_file.swap(true, Ordering::AcqRel)
    }

    /// It has a file that can be claimed.
    pub(super) fn has_file(&self) {
        self.without_file.store(false, Ordering::Release);
    }
}
