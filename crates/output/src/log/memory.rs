//! What the disk did not take of a log, kept in memory for as long as this program runs: the newest
//! bytes after a failure, and stamps.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::Stamp;
use super::runs::{made_since, within};

/// 256 KiB: enough to see how a command ended.
pub(super) const TAIL: usize = 256 * 1024;
/// 1.5 MiB: the stamps of two hours of output without a pause. Without its stamp a byte has the time
/// of the stamp before.
const MOST_STAMPS: usize = 64 * 1024;

/// Shared by the writer and the readers; empty, and never locked, while the disk works. It is the
/// one place where a reader can meet the writer, for the time of a copy.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Boxed: hardly any log has one.
    inner: OnceLock<Box<Mutex<InMemory>>>,
}

/// What lies at an offset in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copied {
    Bytes(usize),
    /// Pushed out by newer bytes, which may not have been published yet.
    Forgotten {
        until: u64,
    },
}

#[derive(Debug)]
struct InMemory {
    /// Where the disk failed and the bytes here began; the highest number if it refused only stamps.
    began: u64,
    /// The offset of the first byte kept.
    start: u64,
    bytes: VecDeque<u8>,
    stamps: VecDeque<Stamp>,
}

impl Memory {
    /// From this offset on, the bytes of the log come here.
    pub(super) fn begin(&self, at: u64) {
        let mut inner = self.lock_or_init();
        (inner.began, inner.start) = (at, at);
    }

    /// The bytes up to this offset are gone; none of them was here.
    pub(super) fn forget_until(&self, at: u64) {
        self.lock_or_init().start = at;
    }

    /// Appends, forgetting the oldest but nothing from `keep_from` on, and returns the offset of the
    /// first byte still there.
    pub(super) fn append(&self, bytes: &[u8], keep_from: u64) -> u64 {
        let mut inner = self.lock_or_init();
        inner.bytes.extend(bytes);
        let may_go = usize::try_from(keep_from.saturating_sub(inner.start)).unwrap_or(usize::MAX);
        let excess = inner.bytes.len().saturating_sub(TAIL).min(may_go);
        inner.bytes.drain(..excess);
        inner.start += excess as u64;
        inner.start
    }

    /// Adds a stamp that is neither before the last nor earlier. If there are too many, only those of
    /// bytes that are here are sure to stay.
    pub(super) fn stamp(&self, stamp: Stamp) {
        let mut inner = self.lock_or_init();
        let end = inner.start.saturating_add(inner.bytes.len() as u64);
        if inner.stamps.len() >= MOST_STAMPS && stamp.offset > end {
            // It is of late output that is not kept.
            return;
        }
        inner.stamps.push_back(stamp);
        while inner.stamps.len() > MOST_STAMPS && inner.stamps[1].offset <= inner.start {
            inner.stamps.pop_front();
        }
    }

    /// The bytes that newer ones have pushed out. Begins where the disk failed, also if it is empty;
    /// lies behind all bytes while the disk works.
    pub(super) fn forgotten(&self) -> Range<u64> {
        self.lock().map_or(u64::MAX..u64::MAX, |inner| inner.began..inner.start)
    }

    /// Copies what is there from `at` on; `None` if it can only be on disk.
    pub(super) fn read(&self, at: u64, into: &mut [u8]) -> Option<Copied> {
        let inner = self.lock()?;
        at.checked_sub(inner.began)?;
        let Some(skip) = at.checked_sub(inner.start) else {
            return Some(Copied::Forgotten { until: inner.start });
        };
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let bytes = inner.bytes.range(skip.min(inner.bytes.len())..);
        let count = bytes.len().min(into.len());
        into.iter_mut().zip(bytes).for_each(|(place, byte)| *place = *byte);
        Some(Copied::Bytes(count))
    }

    /// The stamp that `range` begins with, which may lie before it, and those within.
    pub(super) fn within(&self, range: &Range<u64>) -> Vec<Stamp> {
        self.lock().map_or(Vec::new(), |mut inner| within(inner.stamps.make_contiguous(), range))
    }

    /// The first stamp of this time or later.
    pub(super) fn made_since(&self, at_ms: u64) -> Option<Stamp> {
        made_since(self.lock()?.stamps.make_contiguous(), at_ms)
    }

    fn lock(&self) -> Option<MutexGuard<'_, InMemory>> {
        self.inner.get().map(|inner| guarded(inner))
    }

    fn lock_or_init(&self) -> MutexGuard<'_, InMemory> {
        guarded(self.inner.get_or_init(Box::default))
    }
}

impl Default for InMemory {
    fn default() -> Self {
        let (began, start) = (u64::MAX, u64::MAX);
        Self { began, start, bytes: VecDeque::new(), stamps: VecDeque::new() }
    }
}

fn guarded(inner: &Mutex<InMemory>) -> MutexGuard<'_, InMemory> {
    // A panic in the middle of a change leaves nothing that a reader could not bear.
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Stream;

    #[test]
    fn the_newest_bytes_stay_at_their_offsets() {
        let memory = Memory::default();
        let mut into = [0; 8];
        assert_eq!(memory.read(1000, &mut into), None, "nothing is here");
        memory.begin(1000);
        assert_eq!(memory.append(&vec![b'a'; TAIL], u64::MAX), 1000);
        assert_eq!(memory.append(b"en", 1001), 1001, "what a pin has not read stays");
        assert_eq!(memory.append(b"d", u64::MAX), 1003);
        let last = 1000 + TAIL as u64;
        assert_eq!(memory.read(999, &mut into), None, "the disk has that");
        assert_eq!(memory.read(last, &mut into), Some(Copied::Bytes(3)));
        assert_eq!(&into[..3], b"end");
        assert_eq!(memory.read(1000, &mut into), Some(Copied::Forgotten { until: 1003 }));
        assert_eq!(memory.read(last + 3, &mut into), Some(Copied::Bytes(0)), "not yet written");
        assert_eq!(memory.forgotten(), 1000..1003);
    }

    fn stamp(number: u64) -> Stamp {
        Stamp { offset: number * 2, stream: Stream::Out, at_ms: number }
    }

    #[test]
    fn the_newest_stamps_stay_and_are_found_by_offset_and_by_time() {
        let memory = Memory::default();
        assert_eq!((memory.within(&(0..9)), memory.made_since(0)), (Vec::new(), None));
        let last = MOST_STAMPS as u64;
        (0..=last).for_each(|number| memory.stamp(stamp(number)));
        assert_eq!(memory.within(&(21..25)), [stamp(10), stamp(11), stamp(12)]);
        assert_eq!(memory.within(&(last * 2 + 1..u64::MAX)), [stamp(last)]);
        assert_eq!(memory.within(&(0..2)), [], "the oldest had to go");
        assert_eq!(memory.made_since(0), Some(stamp(1)));
        assert_eq!(memory.made_since(last), Some(stamp(last)));
        assert_eq!(memory.made_since(last + 1), None);
    }

    #[test]
    fn stamps_of_bytes_that_are_here_stay_however_many_they_are() {
        let memory = Memory::default();
        memory.begin(0);
        let last = MOST_STAMPS as u64 + 10;
        for number in 0..=last {
            memory.stamp(stamp(number));
            memory.append(b"xx", 5);
        }
        assert_eq!(memory.within(&(4..7)), [stamp(2), stamp(3)]);
        // Bytes up to here have been read, and are pushed out.
        memory.append(&vec![b'x'; TAIL], last);
        memory.stamp(stamp(last + 1));
        assert_eq!(memory.made_since(0), Some(stamp(12)), "a stamp of bytes that are gone");
        let end = 2 * (last + 1) + TAIL as u64;
        assert_eq!(memory.within(&(end..u64::MAX)), [stamp(last + 1)]);
        memory.stamp(stamp(end));
        assert_eq!(memory.made_since(last + 2), None, "it is of bytes that are not here");
    }
}
