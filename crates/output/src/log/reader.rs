//! The looking side: bytes from a cursor, without asking the owner.

mod times;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::index;
use super::memory::Copied;
use super::place::id_at;
use super::runs::{self, Run};
use super::shared::Shared;
use super::{Extent, Place, ShortLog, Stamp, Stream, Streams};

pub use times::Stamped;

/// Whoever knows how far the log goes at this instant.
pub trait Horizon {
    fn extent(&self) -> Extent;
}

/// What lies at a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// So many bytes were copied.
    Bytes(usize),
    /// The bytes of this range, which begins at the cursor, are gone.
    Dropped(Range<u64>),
    /// The log goes no further in the extent that was asked for.
    End,
}

/// The log's file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the log {path}", path = path.display())]
pub struct ReadError {
    pub path: PathBuf,
    #[source]
    pub source: io::Error,
}

/// A reader of one log. It opens the files when it first needs them and holds them while it lives.
#[derive(Debug)]
pub struct Reader {
    place: Place,
    streams: Streams,
    started_ms: u64,
    shared: Arc<Shared>,
    log: OnceLock<File>,
    index: OnceLock<File>,
}

impl Reader {
    pub(super) fn new(
        place: Place,
        streams: Streams,
        started_ms: u64,
        shared: Arc<Shared>,
    ) -> Self {
        let (log, index) = (OnceLock::new(), OnceLock::new());
        Self { place, streams, started_ms, shared, log, index }
    }

    /// A reader of a log whose writer is gone, and whose process was started at this time, in
    /// milliseconds of unix time. Stamps that the writer had to keep in memory went with it: bytes
    /// of those are told with the one before.
    pub fn of_files(place: Place, streams: Streams, started_ms: u64) -> Self {
        Self::new(place, streams, started_ms, Arc::default())
    }

    /// As [`Reader::of_files`], of a log that has none: this is all there is of it.
    pub fn of_short(log: ShortLog, streams: Streams, started_ms: u64) -> Self {
        let place = Place::new(Path::new(""), 0);
        Self::new(place, streams, started_ms, Arc::new(Shared::in_memory(log)))
    }

    /// Another reader of the same log, with files of its own.
    pub fn again(&self) -> Self {
        Self::new(self.place.clone(), self.streams, self.started_ms, Arc::clone(&self.shared))
    }

    /// Where its bytes are, unless it is in memory or its file is removed.
    pub fn file(&self) -> Option<&Path> {
        self.shared.is_in_file().then(|| self.place.log())
    }

    /// Removes the files of the log, if it has any. A reader that has one open can read on.
    pub fn remove_files(&self) -> io::Result<()> {
        if !self.shared.let_go_of_file() {
            return Ok(());
        }
        // A folder that was made again may be another engine's, with numbers of its own.
        let ours = self.shared.file.get().copied().flatten();
        let is_anothers = |ours| id_at(self.place.log()).is_ok_and(|found| found != ours);
        if ours.is_some_and(is_anothers) {
            return Ok(());
        }
        self.place.remove().inspect_err(|_| self.shared.has_file())
    }

    /// Copies bytes from `at` on, up to the end of `extent` or the next dropped range.
    ///
    /// `live` is asked again after the bytes were copied: what was dropped meanwhile may have been
    /// read as zeros, and is told as dropped instead.
    pub fn read(
        &self,
        extent: &Extent,
        live: &dyn Horizon,
        at: u64,
        into: &mut [u8],
    ) -> Result<Piece, ReadError> {
        self.look((extent, live), at, into, |_| Ok(())).map(|(piece, ())| piece)
    }

    /// As [`Reader::read`], with the stream of each byte that was copied.
    pub fn read_runs(
        &self,
        extent: &Extent,
        live: &dyn Horizon,
        at: u64,
        into: &mut [u8],
    ) -> Result<(Piece, Vec<Run>), ReadError> {
        let (piece, mut runs) = self.look((extent, live), at, into, |range| self.runs(range))?;
        let end = match piece {
            Piece::Bytes(count) => at + count as u64,
            Piece::Dropped(_) | Piece::End => at,
        };
        runs.retain(|run| run.range.start < end);
        if let Some(last) = runs.last_mut() {
            last.range.end = last.range.end.min(end);
        }
        Ok((piece, runs))
    }

    /// Copies, looks up what else there is to know of the range, and only then asks what was
    /// dropped meanwhile.
    fn look<T: Default>(
        &self,
        (extent, live): (&Extent, &dyn Horizon),
        at: u64,
        into: &mut [u8],
        also: impl Fn(Range<u64>) -> Result<T, ReadError>,
    ) -> Result<(Piece, T), ReadError> {
        self.read_own(|| {
            let end = match clear_until(extent, at) {
                Ok(end) => end,
                Err(piece) => return Ok((piece, T::default())),
            };
            let most = usize::try_from(end - at).unwrap_or(usize::MAX).min(into.len());
            let count = match self.copy(at, &mut into[..most])? {
                Copied::Bytes(count) => count,
                Copied::Forgotten { until } => {
                    return Ok((Piece::Dropped(at..until.min(extent.len)), T::default()));
                }
            };
            let known = also(at..at + count as u64)?;
            let piece = match live.extent().dropped.after(at) {
                Some(gone) if gone.start <= at => Piece::Dropped(at..gone.end.min(extent.len)),
                Some(gone) if gone.start < at + count as u64 => {
                    Piece::Bytes((gone.start - at) as usize)
                }
                // Somebody made the file shorter. Without an error a caller takes this for the end.
                _ if count == 0 && most > 0 => {
                    return Err(self.failed(io::ErrorKind::UnexpectedEof.into()));
                }
                _ => Piece::Bytes(count),
            };
            Ok((piece, known))
        })
    }

    /// Reads again if the log left its files during the read: another log may have them. From then on
    /// it is in memory.
    fn read_own<T>(&self, mut read: impl FnMut() -> Result<T, ReadError>) -> Result<T, ReadError> {
        let in_files = self.shared.short.get().is_none();
        let found = read();
        if in_files && self.shared.short.get().is_some() { read() } else { found }
    }

    /// Which bytes of a range are of which stream.
    fn runs(&self, range: Range<u64>) -> Result<Vec<Run>, ReadError> {
        match self.streams {
            Streams::One if range.is_empty() => Ok(Vec::new()),
            Streams::One => Ok(vec![Run { range, stream: Stream::Out }]),
            Streams::Split => self.split_runs(range),
        }
    }

    /// Whether the log tells its streams apart.
    pub fn streams(&self) -> Streams {
        self.streams
    }

    /// From memory what came after the disk failed, or a short log that has ended; from the file all
    /// else.
    fn copy(&self, at: u64, into: &mut [u8]) -> Result<Copied, ReadError> {
        if let Some(copied) = self.shared.tail.read(at, into) {
            return Ok(copied);
        }
        if let Some(short) = self.shared.short.get() {
            return Ok(Copied::Bytes(short.read(at, into)));
        }
        let file = open_once(&self.log, || self.place.log().to_owned())?;
        let count = file.read_at(into, at).map_err(|source| self.failed(source))?;
        Ok(Copied::Bytes(count))
    }

    fn split_runs(&self, range: Range<u64>) -> Result<Vec<Run>, ReadError> {
        let on_disk = range.start..self.shared.tail.began().unwrap_or(u64::MAX).min(range.end);
        let mut found = Vec::new();
        if !on_disk.is_empty() {
            found = runs::runs(&self.all_stamps(&on_disk)?, &on_disk);
        }
        let mut at = on_disk.end.max(range.start);
        while let Some((stream, count)) = self.shared.tail.run(at, range.end - at) {
            found.push(Run { range: at..at + count, stream });
            at += count;
        }
        Ok(found)
    }

    fn all_stamps(&self, range: &Range<u64>) -> Result<Vec<Stamp>, ReadError> {
        if let Some(short) = self.shared.short.get() {
            return Ok(short.within(range));
        }
        let file = open_once(&self.index, || self.place.index())?;
        let written = index::within(file, range, usize::MAX);
        Ok(written.map_err(|error| self.failed(error))?.stamps)
    }

    fn failed(&self, source: io::Error) -> ReadError {
        ReadError { path: self.place.log().to_owned(), source }
    }
}

/// Where the bytes that begin at `at` stop being there for sure; an `Err` is the whole answer.
fn clear_until(extent: &Extent, at: u64) -> Result<u64, Piece> {
    if at >= extent.len {
        return Err(Piece::End);
    }
    match extent.dropped.after(at) {
        Some(gone) if gone.start <= at => Err(Piece::Dropped(at..gone.end.min(extent.len))),
        Some(gone) => Ok(gone.start.min(extent.len)),
        None => Ok(extent.len),
    }
}

fn open_once(cell: &OnceLock<File>, path: impl Fn() -> PathBuf) -> Result<&File, ReadError> {
    if let Some(file) = cell.get() {
        return Ok(file);
    }
    let path = path();
    let file = File::open(&path).map_err(|source| ReadError { path, source })?;
    Ok(cell.get_or_init(|| file))
}
