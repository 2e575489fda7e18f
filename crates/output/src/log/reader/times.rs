//! When bytes came.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::{Horizon, Piece, ReadError, Reader, open_once};
use crate::log::index::{self, Found};
use crate::log::runs::{self, Run};
use crate::log::{Extent, Stamp};

/// Stamps of a range: the first lies where it begins, unless that is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamped {
    pub stamps: Vec<Stamp>,
    /// They are all that there are up to here.
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
        let some = |range| self.stamps(range, MOST_IN_A_READ).map(Some);
        let (piece, stamped) = self.look((extent, live), at, into, some)?;
        let (Piece::Bytes(count), Some(Stamped { mut stamps, until })) = (&piece, stamped) else {
            return Ok((piece, Vec::new()));
        };
        let end = until.min(at + *count as u64);
        stamps.retain(|stamp| stamp.offset < end);
        match stamps.first().map_or(end, |first| first.offset) {
            // Pushed out of memory after it was copied.
            known_from if known_from > at => Ok((Piece::Dropped(at..known_from), Vec::new())),
            _ => Ok((Piece::Bytes((end - at) as usize), stamps)),
        }
    }

    /// The stamps of a range, those of dropped bytes as far as they are still there. No more than
    /// `most`, which is more than none.
    pub fn stamps(&self, range: Range<u64>, most: usize) -> Result<Stamped, ReadError> {
        self.read_own(|| {
            let Found { stamps: times, until } = self.times(&range, most)?;
            let mut stamps = runs::stamps(&self.runs_there(range.start..until)?, &times);
            let until = stamps.get(most).map_or(until, |stamp| stamp.offset);
            stamps.truncate(most);
            Ok(Stamped { stamps, until })
        })
    }

    /// The cursor of the first byte that may have come at this time or later. What is gone right
    /// before it may have, too, and so is in.
    pub fn since(&self, extent: &Extent, at_ms: u64) -> Result<u64, ReadError> {
        let earliest = Stamp::earliest_for(at_ms);
        let start = Some(Stamp::of_start(self.started_ms)).filter(|start| start.at_ms >= earliest);
        let written = self.read_own(|| self.written_since(earliest))?;
        let unwritten = self.shared.unwritten.made_since(earliest);
        let found = [start, written, unwritten].into_iter().flatten();
        let first = found.map(|stamp| stamp.offset).min().filter(|first| *first < extent.len);
        let Some(first) = first else { return Ok(extent.len) };
        let mut gone = extent.dropped.ranges().iter();
        let gone = gone.find(|gone| gone.start < first && first <= gone.end);
        Ok(gone.map_or(first, |gone| gone.start))
    }

    /// The runs of a range, but for what newer bytes have pushed out of memory.
    fn runs_there(&self, range: Range<u64>) -> Result<Vec<Run>, ReadError> {
        let gone = self.shared.tail.forgotten().unwrap_or(range.end..range.end);
        let mut runs = Vec::new();
        for part in [range.start..gone.start.min(range.end), gone.end.max(range.start)..range.end] {
            if !part.is_empty() {
                runs.extend(self.runs(part)?);
            }
        }
        Ok(runs)
    }

    /// Every stamp that says when a byte of the range came, from the start of the process on, in
    /// whatever order of streams. About `most`.
    fn times(&self, range: &Range<u64>, most: usize) -> Result<Found, ReadError> {
        let Found { stamps: written, until } = self.written(range, most)?;
        let mut stamps = vec![Stamp::of_start(self.started_ms)];
        stamps.extend(written);
        stamps.extend(self.shared.unwritten.within(&(range.start..until)));
        stamps.sort_by_key(|stamp| (stamp.offset, stamp.at_ms));
        // Of several for one offset the last holds.
        stamps.dedup_by(|next, last| {
            let same = next.offset == last.offset;
            if same {
                *last = *next;
            }
            same
        });
        Ok(Found { stamps, until })
    }

    fn written(&self, range: &Range<u64>, most: usize) -> Result<Found, ReadError> {
        if let Some(short) = self.shared.short.get() {
            return Ok(Found { stamps: short.within(range), until: range.end });
        }
        match self.index()? {
            Some(file) => index::within(file, range, most).map_err(|error| self.failed(error)),
            None => Ok(Found { stamps: Vec::new(), until: range.end }),
        }
    }

    fn written_since(&self, at_ms: u64) -> Result<Option<Stamp>, ReadError> {
        if let Some(short) = self.shared.short.get() {
            return Ok(short.made_since(at_ms));
        }
        match self.index()? {
            Some(file) => index::made_since(file, at_ms).map_err(|error| self.failed(error)),
            None => Ok(None),
        }
    }

    /// The index, if there is one: not every log has something to say in it.
    fn index(&self) -> Result<Option<&File>, ReadError> {
        match open_once(&self.index, || self.place.index()) {
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::index::IndexWriter;
    use crate::log::place::create_file;
    use crate::log::shared::Shared;
    use crate::log::{Place, Stream, Streams};

    const fn stamp(offset: u64, stream: Stream, at_ms: u64) -> Stamp {
        Stamp { offset, stream, at_ms }
    }

    /// The disk failed at byte 10, and time has gone on a little before the next stamp.
    #[test]
    fn the_first_bytes_in_memory_have_the_last_stamp_on_disk() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::new(folder.path(), 1);
        let mut index = IndexWriter::new(create_file(&place.index()).expect("an index"));
        index.append(stamp(0, Stream::Err, 200)).expect("room");
        index.append(stamp(4, Stream::Out, 200)).expect("room");
        let shared = Shared::default();
        shared.tail.begin(10);
        shared.tail.append(b"out", Stream::Out, u64::MAX);
        shared.tail.append(b"err", Stream::Err, u64::MAX);
        shared.unwritten.add(stamp(14, Stream::Err, 300));
        let reader = Reader::new(place, Streams::Split, 100, shared.into());
        let in_memory =
            [stamp(10, Stream::Out, 200), stamp(13, Stream::Err, 200), stamp(14, Stream::Err, 300)];
        assert_eq!(reader.stamps(10..16, 9).expect("readable").stamps, in_memory);
        let on_disk = [stamp(0, Stream::Err, 200), stamp(4, Stream::Out, 200)];
        let stamped = reader.stamps(0..16, 9).expect("readable");
        assert_eq!(stamped, Stamped { stamps: [&on_disk[..], &in_memory].concat(), until: 16 });
    }
}
