//! The reading side of a log: bytes from a cursor, without asking the owner.

mod times;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::memory::Copied;
use super::place::{FileId, id_at};
use super::runs::{Run, runs};
use super::shared::Shared;
use super::{Extent, Place, ShortLog, Stamp, Stream, Streams};

pub use times::Stamped;

/// Knows the extent of the log at this instant.
pub trait Horizon {
    fn extent(&self) -> Extent;
}

/// What lies at a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// This many bytes were copied.
    Bytes(usize),
    /// The bytes of this range, which begins at the cursor, are gone.
    Dropped(Range<u64>),
    /// The log ends here in the extent that was given.
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

/// A reader of one log. It opens the files when it first needs them and closes them when dropped.
#[derive(Debug)]
pub struct Reader {
    shared: Arc<Shared>,
    log: OnceLock<File>,
    index: OnceLock<File>,
}

impl Reader {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, log: OnceLock::new(), index: OnceLock::new() }
    }

    /// A reader of a log whose writer is gone, and whose process was started at this time, in
    /// milliseconds of unix time. Stamps that the writer had in memory are lost: their bytes have
    /// the stamp before.
    pub fn of_files(place: Place, streams: Streams, started_ms: u64) -> Self {
        Self::new(Arc::new(Shared::new(place, streams, started_ms)))
    }

    /// As [`Reader::of_files`], for a log that has no file: this is all there is of it.
    pub fn of_short(log: ShortLog, streams: Streams, started_ms: u64) -> Self {
        let shared = Shared::new(Place::new(Path::new(""), 0), streams, started_ms);
        shared.let_go_of_file();
        shared.short.get_or_init(|| Box::new(log));
        Self::new(Arc::new(shared))
    }

    /// Another reader of the same log, with files of its own.
    pub fn again(&self) -> Self {
        Self::new(Arc::clone(&self.shared))
    }

    /// Where its bytes are, unless it is in memory or its file is removed.
    pub fn file(&self) -> Option<&Path> {
        self.shared.is_in_file().then(|| self.shared.place.log())
    }

    /// Removes the files of the log, if it has any. A reader that has them open can still read.
    pub fn remove_files(&self) -> io::Result<()> {
        if !self.shared.let_go_of_file() {
            return Ok(());
        }
        // In a folder that was created again, another engine may use the same number.
        let Shared { place, file, .. } = &*self.shared;
        let is_foreign = |ours: &FileId| id_at(place.log()).is_ok_and(|found| found != *ours);
        if file.get().is_some_and(is_foreign) {
            return Ok(());
        }
        place.remove().inspect_err(|_| self.shared.has_file())
    }

    /// Copies bytes from `at` on, up to the end of `extent` or the next dropped range.
    ///
    /// `live` is asked again after the bytes were copied: what was dropped meanwhile may have been
    /// read as zeros, and is reported as dropped instead.
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
        let (piece, stamps) = match self.shared.streams {
            // No stamp has to be looked up.
            Streams::One => {
                let stamp =
                    Stamp { offset: at, stream: Stream::Out, at_ms: self.shared.started_ms };
                (self.read(extent, live, at, into)?, vec![stamp])
            }
            Streams::Split => self.read_stamped((extent, live), at, into, usize::MAX)?,
        };
        let runs = match piece {
            Piece::Bytes(count) if count > 0 => runs(&stamps, at + count as u64),
            Piece::Bytes(_) | Piece::Dropped(_) | Piece::End => Vec::new(),
        };
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
                // The file was truncated by another program. Without an error this looks like the end.
                _ if count == 0 && most > 0 => {
                    return Err(self.failed(io::ErrorKind::UnexpectedEof.into()));
                }
                _ => Piece::Bytes(count),
            };
            Ok((piece, known))
        })
    }

    /// Reads again if the log was settled during the read: another log may have got its files.
    fn read_own<T>(&self, mut read: impl FnMut() -> Result<T, ReadError>) -> Result<T, ReadError> {
        let in_files = self.shared.short.get().is_none();
        let found = read();
        if in_files && self.shared.short.get().is_some() { read() } else { found }
    }

    /// Copies from memory if the disk failed before `at` or the log is settled, otherwise from the file.
    fn copy(&self, at: u64, into: &mut [u8]) -> Result<Copied, ReadError> {
        if let Some(copied) = self.shared.memory.read(at, into) {
            return Ok(copied);
        }
        if let Some(short) = self.shared.short.get() {
            return Ok(Copied::Bytes(short.read(at, into)));
        }
        let file = open_once(&self.log, || self.shared.place.log().to_owned())?;
        let count = file.read_at(into, at).map_err(|source| self.failed(source))?;
        Ok(Copied::Bytes(count))
    }

    fn failed(&self, source: io::Error) -> ReadError {
        ReadError { path: self.shared.place.log().to_owned(), source }
    }
}

/// Up to where all bytes from `at` on are there in this extent; an `Err` is the whole answer.
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
