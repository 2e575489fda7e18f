//! The stamps of a log on the writing side: when bytes came, and on which stream.
//!
//! A stamp holds until the next one. The first, the process's start, is never written. So a log
//! whose bytes all came within [`RESOLUTION`] of it has no index, unless it has split streams.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::index::IndexWriter;
use super::place::create_file;
use super::shared::Shared;
use super::short::MOST_STAMPS;
use super::{Stream, Streams};

/// How much later than its stamp a byte can have come.
pub const RESOLUTION: Duration = Duration::from_millis(100);

const RESOLUTION_MS: u64 = RESOLUTION.as_millis() as u64;

/// The offset where bytes of one stream and about one time begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub offset: u64,
    pub stream: Stream,
    /// In milliseconds of unix time: its bytes came then or less than [`RESOLUTION`] later. If the
    /// clock was set back, the last stamp holds until the clock has passed it.
    pub at_ms: u64,
}

impl Stamp {
    /// The stamp that every log begins with.
    pub(super) fn of_start(started_ms: u64) -> Self {
        // In the index a time of zero is a hole.
        Self { offset: 0, stream: Stream::Out, at_ms: started_ms.max(1) }
    }

    /// The earliest stamp that can hold bytes of this time or later.
    pub(super) fn earliest_for(at_ms: u64) -> u64 {
        at_ms.saturating_sub(RESOLUTION_MS - 1)
    }
}

/// The stamps of one log, on the writing side.
#[derive(Debug)]
pub(super) struct Stamps {
    newest: Stamp,
    /// Whether the stream of the newest stamp is written, or in memory.
    has_stream: bool,
    /// Created with the first stamp that has to be written.
    index: Option<IndexWriter>,
    /// The empty index file of an earlier log.
    empty: Option<File>,
    shared: Arc<Shared>,
}

impl Stamps {
    pub(super) fn new(empty: Option<File>, shared: Arc<Shared>) -> Self {
        let newest = Stamp::of_start(shared.started_ms);
        Self { newest, has_stream: false, index: None, empty, shared }
    }

    /// Goes on with the stamps of a log that has this length. A stamp whose bytes never came holds for
    /// what comes instead, if that is of the same stream and time.
    pub(super) fn resume(
        index: Option<File>,
        shared: Arc<Shared>,
        log_len: u64,
    ) -> io::Result<Self> {
        let mut stamps = Self::new(None, shared);
        let Some(file) = index else { return Ok(stamps) };
        let index = IndexWriter::resume(file, log_len)?;
        match index.last() {
            None => stamps.empty = Some(index.into_emptied_file()?),
            Some(last) => {
                (stamps.newest, stamps.has_stream) = (last, true);
                stamps.index = Some(index);
            }
        }
        Ok(stamps)
    }

    /// Whether the next byte needs a stamp.
    pub(super) fn is_due(&self, stream: Stream, now_ms: u64) -> bool {
        let elapsed_ms = now_ms.saturating_sub(self.newest.at_ms);
        elapsed_ms >= RESOLUTION_MS || self.changes_stream(stream)
    }

    /// Records that the byte at `offset` and those after it are of `stream` and came now. A stamp
    /// that differs only in its time is kept in memory if the disk does not take it.
    pub(super) fn begin(&mut self, offset: u64, stream: Stream, now_ms: u64) -> io::Result<()> {
        let stamp = self.next(offset, stream, now_ms);
        match self.write(stamp) {
            Err(error) if self.changes_stream(stream) => return Err(error),
            Err(_) => self.shared.memory.stamp(stamp),
            Ok(()) => {}
        }
        (self.newest, self.has_stream) = (stamp, true);
        Ok(())
    }

    /// All stamps, if the index has them and they are few.
    pub(super) fn few(&self) -> Option<Vec<Stamp>> {
        if self.shared.memory.made_since(0).is_some() {
            return None;
        }
        let Some(index) = &self.index else { return Some(Vec::new()) };
        index.all().ok().filter(|stamps| stamps.len() <= MOST_STAMPS)
    }

    /// The file of the index, emptied, if there is one.
    pub(super) fn into_emptied_file(self) -> io::Result<Option<File>> {
        let Some(index) = self.index else { return Ok(self.empty) };
        index.into_emptied_file().map(Some)
    }

    /// As [`Stamps::begin`], for bytes that are in memory, and only if it is due.
    pub(super) fn begin_in_memory(&mut self, offset: u64, stream: Stream, now_ms: u64) {
        if self.is_due(stream, now_ms) {
            (self.newest, self.has_stream) = (self.next(offset, stream, now_ms), true);
            self.shared.memory.stamp(self.newest);
        }
    }

    /// How many bytes the index takes on disk.
    pub(super) fn kept(&self) -> u64 {
        self.index.as_ref().map_or(0, IndexWriter::kept)
    }

    /// Frees the disk space of stamps that are only of bytes in `gone`.
    pub(super) fn give_back(&mut self, gone: &Range<u64>) -> io::Result<()> {
        self.index.as_mut().map_or(Ok(()), |index| index.give_back(gone))
    }

    /// Writes no more into these files: the next stamp begins another index, or is in memory.
    pub(super) fn close(&mut self) {
        (self.index, self.empty, self.has_stream) = (None, None, false);
    }

    fn changes_stream(&self, stream: Stream) -> bool {
        match self.shared.streams {
            Streams::One => false,
            Streams::Split => !self.has_stream || self.newest.stream != stream,
        }
    }

    fn next(&self, offset: u64, stream: Stream, now_ms: u64) -> Stamp {
        // A clock that was set back must not make later bytes look earlier.
        Stamp { offset, stream, at_ms: now_ms.max(self.newest.at_ms) }
    }

    fn write(&mut self, stamp: Stamp) -> io::Result<()> {
        let index = match &mut self.index {
            Some(index) => index,
            None => {
                let empty = self.empty.take();
                let file = empty.map_or_else(|| create_file(&self.shared.place.index()), Ok)?;
                self.index.insert(IndexWriter::new(file))
            }
        };
        index.append(stamp)
    }
}
