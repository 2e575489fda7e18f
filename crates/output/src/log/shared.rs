//! What a writer and the readers of its log have in common.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::memory::Memory;
use super::place::FileId;
use super::{Place, ShortLog, Streams};

/// Made with the log, so that readers that were made before a disk failure see it too.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) place: Place,
    pub(super) streams: Streams,
    /// When the process was started, in milliseconds of unix time.
    pub(super) started_ms: u64,
    /// The whole log, once it is settled. Set before its file is given to another log.
    pub(super) short: OnceLock<Box<ShortLog>>,
    /// The identity of its file, from the first byte on.
    pub(super) file: OnceLock<FileId>,
    /// Its file was removed or given back.
    without_file: AtomicBool,
    pub(super) memory: Memory,
}

impl Shared {
    pub(super) fn new(place: Place, streams: Streams, started_ms: u64) -> Self {
        let (short, file) = (OnceLock::new(), OnceLock::new());
        let (without_file, memory) = (AtomicBool::new(false), Memory::default());
        Self { place, streams, started_ms, short, file, without_file, memory }
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
