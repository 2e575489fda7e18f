//! When bytes came and on which stream, as the writer of a log says it.
//!
//! A stamp holds until the next one. The first is never written: the process's start. So a log
//! whose bytes all came within [`RESOLUTION`] of it has no index, unless it tells streams apart.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::index::IndexWriter;
use super::place::create_file;
use super::shared::Shared;
use super::short::MOST_STAMPS;
use super::{Place, Stream, Streams};

/// How far a byte's time can lie behind the stamp that it is told with.
pub const RESOLUTION: Duration = Duration::from_millis(100);

const RESOLUTION_MS: u64 = RESOLUTION.as_millis() as u64;

/// Where bytes of one stream begin that came at about one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub offset: u64,
    pub stream: Stream,
    /// In milliseconds of unix time: its bytes came then or less than [`RESOLUTION`] later. While
    /// the clock is behind the last stamp, because it was set back, that one goes on.
    pub at_ms: u64,
}

impl Stamp {
    /// The one that every log begins with.
    pub(super) fn of_start(started_ms: u64) -> Self {
        // In the index a time of zero is a hole.
        Self { offset: 0, stream: Stream::Out, at_ms: started_ms.max(1) }
    }

    /// The earliest stamp that can hold bytes of this time or later.
    pub(super) fn earliest_for(at_ms: u64) -> u64 {
        at_ms.saturating_sub(RESOLUTION_MS - 1)
    }
}

/// The stamps of one log, on the appending side.
#[derive(Debug)]
pub(super) struct Stamps {
    streams: Streams,
    newest: Stamp,
    /// Whether a stamp was told besides the first.
    told: bool,
    /// Made with the first stamp that has to be written.
    index: Option<IndexWriter>,
    /// An empty file in its place, which an earlier log has left.
    empty: Option<File>,
    shared: Arc<Shared>,
}

impl Stamps {
    pub(super) fn new(
        streams: Streams,
        started_ms: u64,
        empty: Option<File>,
        shared: Arc<Shared>,
    ) -> Self {
        let newest = Stamp::of_start(started_ms);
        Self { streams, newest, told: false, index: None, empty, shared }
    }

    /// Whether the next byte needs one.
    pub(super) fn is_due(&self, stream: Stream, now_ms: u64) -> bool {
        self.tells_stream(stream) || self.tells_time(now_ms)
    }

    /// Says that the byte at `offset` and those after it are of `stream` and came now. A stamp
    /// that only tells a time is kept in memory if the disk does not take it.
    pub(super) fn begin(
        &mut self,
        place: &Place,
        offset: u64,
        stream: Stream,
        now_ms: u64,
    ) -> io::Result<()> {
        let (stamp, tells_stream) = (self.next(offset, stream, now_ms), self.tells_stream(stream));
        match self.write(place, stamp) {
            Err(error) if tells_stream => return Err(error),
            Err(_) => self.shared.unwritten.add(stamp),
            Ok(()) => {}
        }
        (self.newest, self.told) = (stamp, true);
        Ok(())
    }

    /// All that were told, if the index has them and they are few.
    pub(super) fn few(&self) -> Option<Vec<Stamp>> {
        if self.shared.unwritten.made_since(0).is_some() {
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

    /// As [`Stamps::begin`], for bytes that are in memory with their streams.
    pub(super) fn begin_in_memory(&mut self, offset: u64, stream: Stream, now_ms: u64) {
        if self.tells_time(now_ms) {
            self.newest = self.next(offset, stream, now_ms);
            self.shared.unwritten.add(self.newest);
        }
    }

    /// What the index takes on disk.
    pub(super) fn kept(&self) -> u64 {
        self.index.as_ref().map_or(0, IndexWriter::kept)
    }

    /// Gives back what speaks only of bytes in `gone`.
    pub(super) fn give_back(&mut self, gone: &Range<u64>) -> io::Result<()> {
        self.index.as_mut().map_or(Ok(()), |index| index.give_back(gone))
    }

    /// Writes no more into the files there are.
    pub(super) fn close(&mut self) {
        (self.index, self.empty) = (None, None);
    }

    fn tells_stream(&self, stream: Stream) -> bool {
        match self.streams {
            Streams::One => false,
            Streams::Split => !self.told || self.newest.stream != stream,
        }
    }

    fn tells_time(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.newest.at_ms) >= RESOLUTION_MS
    }

    fn next(&self, offset: u64, stream: Stream, now_ms: u64) -> Stamp {
        // A clock that was set back must not make later bytes look earlier.
        Stamp { offset, stream, at_ms: now_ms.max(self.newest.at_ms) }
    }

    fn write(&mut self, place: &Place, stamp: Stamp) -> io::Result<()> {
        let index = match &mut self.index {
            Some(index) => index,
            None => {
                let empty = self.empty.take();
                let file = empty.map_or_else(|| create_file(&place.index()), Ok)?;
                self.index.insert(IndexWriter::new(file))
            }
        };
        index.append(stamp)
    }
}
