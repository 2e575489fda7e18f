//! What a writer and the readers of its log have in common, besides the files.

use super::memory::Tail;
use super::short::Short;
use super::unwritten::Unwritten;

/// Made with the log, so that readers that were made before a failure find it too.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Before there is a file.
    pub(super) short: Short,
    /// After the disk failed.
    pub(super) tail: Tail,
    pub(super) unwritten: Unwritten,
}
