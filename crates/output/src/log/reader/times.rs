//! When bytes came.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::{Horizon, Piece, ReadError, Reader, open_once};
use crate::log::runs::{clipped, made_since, within};
use crate::log::shared::Shared;
use crate::log::{Extent, Stamp, Streams, index};

/// The stamps of a range. The first lies where the range begins, unless that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stamped {
    pub stamps: Vec<Stamp>,
    /// Up to this offset there are no others.
    pub until: u64,
}

/// A log may have a stamp for every byte, and nobody can use so many at once.
const MOST_IN_A_READ: usize = 256;

impl Reader {
    /// As [`Reader::read`], with the stamps of the bytes that were copied: the first lies at `at`.
    /// Bytes of more than 256 stamps are left for the next call.
    pub fn read_stamps(
        &self,
        extent: &Extent,
        live: &dyn Horizon,
        at: u64,
        into: &mut [u8],
    ) -> Result<(Piece, Vec<Stamp>), ReadError> {
        self.read_stamped((extent, live), at, into, MOST_IN_A_READ)
    }

    pub(super) fn read_stamped(
        &self,
        extents: (&Extent, &dyn Horizon),
        at: u64,
        into: &mut [u8],
        most: usize,
    ) -> Result<(Piece, Vec<Stamp>), ReadError> {
        let stamps = |range| self.stamps(range, most);
        let (piece, Stamped { mut stamps, until }) = self.look(extents, at, into, stamps)?;
        let Piece::Bytes(count) = piece else { return Ok((piece, Vec::new())) };
        let end = until.min(at + count as u64);
        stamps.retain(|stamp| stamp.offset < end);
        match stamps.first().map_or(end, |first| first.offset) {
            // Pushed out of memory after it was copied.
            known_from if known_from > at => Ok((Piece::Dropped(at..known_from), Vec::new())),
            _ => Ok((Piece::Bytes((end - at) as usize), stamps)),
        }
    }

    /// At most `most` stamps of a range, and at least one; of dropped bytes those still there.
    pub fn stamps(&self, range: Range<u64>, most: usize) -> Result<Stamped, ReadError> {
        self.read_own(|| {
            let Stamped { stamps: all, until } = self.all_stamps(&range, most)?;
            // Nothing is known of bytes that newer ones have pushed out of memory.
            let gone = self.shared.memory.forgotten();
            let before = clipped(&all, range.start..gone.start.min(until));
            let after = clipped(&all, gone.end.max(range.start)..until);
            let mut stamps = [before, after].concat();
            let until = stamps.get(most).map_or(until, |stamp| stamp.offset);
            stamps.truncate(most);
            Ok(Stamped { stamps, until })
        })
    }

    /// The cursor of the first byte that may have come at this time or later. A dropped range right
    /// before it may have, too, and is included.
    pub fn since(&self, extent: &Extent, at_ms: u64) -> Result<u64, ReadError> {
        let earliest = Stamp::earliest_for(at_ms);
        let start = Stamp::of_start(self.shared.started_ms);
        let written = self.read_own(|| self.written_since(earliest))?;
        let in_memory = self.shared.memory.made_since(earliest);
        let found = [made_since(&[start], earliest), written, in_memory].into_iter().flatten();
        let first = found.map(|stamp| stamp.offset).min().filter(|first| *first < extent.len);
        let Some(first) = first else { return Ok(extent.len) };
        let mut gone = extent.dropped.ranges().iter();
        let gone = gone.find(|gone| gone.start < first && first <= gone.end);
        Ok(gone.map_or(first, |gone| gone.start))
    }

    /// The stamp that the range begins with, which may lie before it, and those within, wherever they
    /// are kept. About `most`.
    fn all_stamps(&self, range: &Range<u64>, most: usize) -> Result<Stamped, ReadError> {
        let Stamped { stamps: written, until } = self.written(range, most)?;
        let mut stamps = match self.shared.streams {
            Streams::One => vec![Stamp::of_start(self.shared.started_ms)],
            // The first byte has a stamp with its stream.
            Streams::Split => Vec::new(),
        };
        stamps.extend(written);
        stamps.extend(self.shared.memory.within(&(range.start..until)));
        stamps.sort_by_key(|stamp| (stamp.offset, stamp.at_ms));
        // Of several stamps for one offset the last holds.
        stamps.dedup_by(|next, last| {
            let same = next.offset == last.offset;
            if same {
                *last = *next;
            }
            same
        });
        Ok(Stamped { stamps, until })
    }

    fn written(&self, range: &Range<u64>, most: usize) -> Result<Stamped, ReadError> {
        if let Some(short) = self.shared.short.get() {
            return Ok(Stamped { stamps: within(&short.stamps, range), until: range.end });
        }
        match self.index(range.start)? {
            Some(file) => index::within(file, range, most).map_err(|error| self.failed(error)),
            None => Ok(Stamped { stamps: Vec::new(), until: range.end }),
        }
    }

    fn written_since(&self, at_ms: u64) -> Result<Option<Stamp>, ReadError> {
        if let Some(short) = self.shared.short.get() {
            return Ok(made_since(&short.stamps, at_ms));
        }
        match self.index(u64::MAX)? {
            Some(file) => index::made_since(file, at_ms).map_err(|error| self.failed(error)),
            None => Ok(None),
        }
    }

    /// The index, for stamps from `from` on. There may be none, except for split streams on disk.
    fn index(&self, from: u64) -> Result<Option<&File>, ReadError> {
        let Shared { streams, memory, place, .. } = &*self.shared;
        let is_needed = || *streams == Streams::Split && from < memory.forgotten().start;
        match open_once(&self.index, || place.index()) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound && !is_needed() => {
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::index::IndexWriter;
    use crate::log::place::create_file;
    use crate::log::{Place, Stream};

    /// The disk failed at byte 10, and time has gone on a little before the next stamp.
    #[test]
    fn the_first_bytes_in_memory_have_the_last_stamp_on_disk() {
        let stamp = |offset, at_ms| Stamp { offset, stream: Stream::Out, at_ms };
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::new(folder.path(), 1);
        let mut index = IndexWriter::new(create_file(&place.index()).expect("an index"));
        index.append(stamp(2, 200)).expect("room");
        index.append(stamp(4, 300)).expect("room");
        let shared = Shared::new(place, Streams::One, 100);
        shared.memory.begin(10);
        shared.memory.append(b"memory", u64::MAX);
        shared.memory.stamp(stamp(14, 400));
        let reader = Reader::new(shared.into());
        let in_memory = [stamp(10, 300), stamp(14, 400)];
        assert_eq!(reader.stamps(10..16, 9).expect("readable").stamps, in_memory);
        let on_disk = [stamp(0, 100), stamp(2, 200), stamp(4, 300)];
        let stamped = reader.stamps(0..16, 9).expect("readable");
        assert_eq!(stamped, Stamped { stamps: [&on_disk[..], &in_memory].concat(), until: 16 });
    }
}
