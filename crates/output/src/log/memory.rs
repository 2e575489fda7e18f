//! The newest bytes of a log whose disk failed, kept in memory.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::Stream;

/// 256 KiB: enough to see how a command ended.
pub(super) const TAIL: usize = 256 * 1024;

/// Shared by the writer and the readers; exists only after the disk failed. It is the one place
/// where a reader can meet the writer, for the time of a copy.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// Boxed: hardly any log has one.
    inner: OnceLock<Box<Mutex<Inner>>>,
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

#[derive(Debug, Default)]
struct Inner {
    /// Where the disk failed and this tail began.
    began: u64,
    /// The offset of the first byte kept.
    start: u64,
    bytes: VecDeque<u8>,
    /// The stream of each byte: with both streams in turn, runs would be larger.
    streams: VecDeque<Stream>,
}

impl Tail {
    /// Begins at this offset of the log.
    pub(super) fn begin(&self, at: u64) {
        let inner = Inner { began: at, start: at, ..Inner::default() };
        self.inner.get_or_init(|| Box::new(Mutex::new(inner)));
    }

    /// Appends, forgetting the oldest but nothing from `keep_from` on, and returns the offset of the
    /// first byte still there.
    pub(super) fn append(&self, bytes: &[u8], stream: Stream, keep_from: u64) -> u64 {
        let Some(mut inner) = self.lock() else { return 0 };
        inner.bytes.extend(bytes);
        inner.streams.extend(std::iter::repeat_n(stream, bytes.len()));
        let may_go = usize::try_from(keep_from.saturating_sub(inner.start)).unwrap_or(usize::MAX);
        let excess = inner.bytes.len().saturating_sub(TAIL).min(may_go);
        inner.bytes.drain(..excess);
        inner.streams.drain(..excess);
        inner.start += excess as u64;
        inner.start
    }

    /// Where the bytes of the disk end and those of the memory begin; `None` while the disk is well.
    pub(super) fn began(&self) -> Option<u64> {
        Some(self.lock()?.began)
    }

    /// What newer bytes have pushed out; `None` while the disk is well.
    pub(super) fn forgotten(&self) -> Option<Range<u64>> {
        let inner = self.lock()?;
        Some(inner.began..inner.start)
    }

    /// Copies what is there from `at` on; `None` when the disk has it, if anybody.
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

    /// The stream of the byte at `at` and how many follow it on the same stream, up to `most`.
    pub(super) fn run(&self, at: u64, most: u64) -> Option<(Stream, u64)> {
        let most = Some(most).filter(|most| *most > 0)?;
        let inner = self.lock()?;
        let skip = usize::try_from(at.checked_sub(inner.start)?).ok()?;
        let stream = *inner.streams.get(skip)?;
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let same = inner.streams.range(skip..).take(most).take_while(|other| **other == stream);
        Some((stream, same.count() as u64))
    }

    /// `None` while the disk is well: then nobody locks anything.
    fn lock(&self) -> Option<MutexGuard<'_, Inner>> {
        // A panic in the middle of a copy leaves nothing half done that a reader could not bear.
        Some(self.inner.get()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_bytes_stay_at_their_offsets() {
        let tail = Tail::default();
        tail.begin(1000);
        assert_eq!(tail.append(&vec![b'a'; TAIL], Stream::Out, u64::MAX), 1000);
        assert_eq!(tail.append(b"en", Stream::Err, 1001), 1001, "what a pin has not read stays");
        assert_eq!(tail.append(b"d", Stream::Err, u64::MAX), 1003);
        let last = 1000 + TAIL as u64;
        let mut into = [0; 8];
        assert_eq!(tail.read(999, &mut into), None, "the disk has that");
        assert_eq!(tail.read(last, &mut into), Some(Copied::Bytes(3)));
        assert_eq!(&into[..3], b"end");
        assert_eq!(tail.read(1000, &mut into), Some(Copied::Forgotten { until: 1003 }));
        assert_eq!(tail.read(last + 3, &mut into), Some(Copied::Bytes(0)), "not yet written");
        assert_eq!(tail.run(last, 0), None, "no run is empty");
        assert_eq!(tail.run(last, 100), Some((Stream::Err, 3)));
        assert_eq!(tail.run(1003, 7), Some((Stream::Out, 7)));
    }
}
