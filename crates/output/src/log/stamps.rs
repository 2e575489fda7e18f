//! When bytes came and on which stream, as the writer of a log says it.
//!
//! A stamp holds until the next one. The first is never written: the process's start. So a log
//! whose bytes all came within [`RESOLUTION`] of it has no index, unless it tells streams apart.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::index::IndexWriter;
use super::place::create_file;
use super::shared::Shared;
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
    shared: Arc<Shared>,
}

impl Stamps {
    pub(super) fn new(streams: Streams, started_ms: u64, shared: Arc<Shared>) -> Self {
        let newest = Stamp::of_start(started_ms);
        Self { streams, newest, told: false, index: None, shared }
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
        self.tell(stamp);
        Ok(())
    }

    /// The stamp that the next byte of a log without an index needs, if it does.
    pub(super) fn due(&self, offset: u64, stream: Stream, now_ms: u64) -> Option<Stamp> {
        self.is_due(stream, now_ms).then(|| self.next(offset, stream, now_ms))
    }

    /// Somebody has said that stamp.
    pub(super) fn tell(&mut self, stamp: Stamp) {
        (self.newest, self.told) = (stamp, true);
    }

    /// Writes into an index what was told before there was one. On an error of a log that tells
    /// streams apart nothing is changed; others keep the times in memory.
    pub(super) fn write_down(&mut self, place: &Place, told: &[Stamp]) -> io::Result<()> {
        for (number, stamp) in told.iter().enumerate() {
            match (self.write(place, *stamp), self.streams) {
                (Ok(()), _) => {}
                (Err(error), Streams::Split) => {
                    self.index = None;
                    return Err(error);
                }
                (Err(_), Streams::One) => {
                    told[number..].iter().for_each(|stamp| self.shared.unwritten.add(*stamp));
                    break;
                }
            }
        }
        Ok(())
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

    /// Writes no more.
    pub(super) fn close(&mut self) {
        self.index = None;
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
        if let Some(index) = &mut self.index {
            return index.append(stamp);
        }
        let mut index = IndexWriter::new(create_file(&place.index())?);
        index.append(stamp)?;
        self.index = Some(index);
        Ok(())
    }
}
