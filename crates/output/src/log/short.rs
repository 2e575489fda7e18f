//! The bytes of a short log, which has no file: most commands say little, and to make a file takes
//! longer than to write into one.
//!
//! Whoever keeps them makes them outlive this program, and readers have them from memory.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Stamp;

/// A log that grows larger gets a file.
pub(super) const MOST_BYTES: usize = 4096;
/// So does one that comes in more pieces: each is a write of its own.
pub(super) const MOST_PIECES: usize = 16;

/// Bytes from the beginning of a log on, with those stamps that its index would have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ShortLog {
    pub bytes: Vec<u8>,
    pub stamps: Vec<Stamp>,
}

/// Keeps what a log says while it is short.
pub trait Keep: Debug + Send + Sync {
    /// Keeps the bytes that follow those it has. `false` when it cannot: then it keeps none of
    /// them.
    fn keep(&self, more: &ShortLog) -> bool;

    /// They are all in a file now.
    fn moved(&self);
}

/// Shared by the writer and the readers.
#[derive(Debug, Default)]
pub(super) struct Short {
    /// `None` once there is a file. Held for the time of a copy.
    log: Mutex<Option<Box<ShortLog>>>,
}

impl ShortLog {
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn append(&mut self, more: &Self) {
        self.bytes.extend(&more.bytes);
        self.stamps.extend(&more.stamps);
    }
}

impl Short {
    pub(super) fn of(log: ShortLog) -> Self {
        Self { log: Mutex::new(Some(Box::new(log))) }
    }

    pub(super) fn append(&self, more: &ShortLog) {
        self.log().get_or_insert_default().append(more);
    }

    /// All of it, to be written into a file.
    pub(super) fn whole(&self) -> Option<ShortLog> {
        self.log().as_deref().cloned()
    }

    /// There is a file that has it all.
    pub(super) fn moved(&self) {
        *self.log() = None;
    }

    /// Copies what is there from `at` on; `None` when a file has it, if anybody.
    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> Option<usize> {
        let log = self.log();
        let bytes = log.as_ref()?.bytes.get(usize::try_from(at).ok()?..)?;
        let count = bytes.len().min(into.len());
        into[..count].copy_from_slice(&bytes[..count]);
        Some(count)
    }

    /// The stamp that `range` begins with, which may lie before it, and those within; `None` when
    /// a file has them, if anybody.
    pub(super) fn within(&self, range: &Range<u64>) -> Option<Vec<Stamp>> {
        let log = self.log();
        let stamps = &log.as_ref()?.stamps;
        let first = stamps.partition_point(|stamp| stamp.offset <= range.start).saturating_sub(1);
        let behind = stamps[first..].iter().copied();
        Some(behind.take_while(|stamp| stamp.offset < range.end).collect())
    }

    /// The first stamp that was made at this time or later.
    pub(super) fn made_since(&self, at_ms: u64) -> Option<Stamp> {
        let log = self.log();
        log.as_ref()?.stamps.iter().copied().find(|stamp| stamp.at_ms >= at_ms)
    }

    fn log(&self) -> MutexGuard<'_, Option<Box<ShortLog>>> {
        // A panic in the middle of an append leaves bytes that nobody was told of.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Stream;

    #[test]
    fn it_reads_as_far_as_it_goes_until_a_file_has_it() {
        let short = Short::default();
        let mut into = [0; 3];
        assert_eq!(short.read(0, &mut into), None);
        let stamp = |offset, at_ms| Stamp { offset, stream: Stream::Out, at_ms };
        let stamps = vec![stamp(0, 5), stamp(2, 7), stamp(4, 9)];
        short.append(&ShortLog { bytes: b"abcdef".to_vec(), stamps: stamps.clone() });
        assert_eq!((short.read(1, &mut into), &into), (Some(3), b"bcd"));
        assert_eq!((short.read(4, &mut into), &into[..2]), (Some(2), &b"ef"[..]));
        assert_eq!(short.read(7, &mut into), None);
        assert_eq!(short.within(&(3..5)), Some(stamps[1..].to_vec()));
        assert_eq!(short.made_since(6), Some(stamps[1]));
        short.moved();
        assert_eq!((short.read(1, &mut into), short.within(&(0..5))), (None, None));
    }
}
