//! The one side that appends: pipe in, file out, within the quota.
//!
//! Whoever owns a writer publishes its [`Extent`] after each append, and only then lets it give
//! back what that extent calls dropped: so no reader meets a hole it was not told of.

mod few;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::Arc;

use lastbyte_sys::Errno;
use lastbyte_sys::file::punch_hole;
use lastbyte_sys::pipe::{Readiness, read, readiness, splice_into_file};

use super::memory::TAIL;
use super::place::create_file;
use super::shared::Shared;
use super::stamps::Stamps;
use super::{Dropped, Extent, Keep, Place, Quota, Reader, Spares, Stream};
use few::Keeping;

/// Whether the log says of each byte which stream it is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    One,
    Split,
}

/// What one step brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pulled {
    Bytes(usize),
    /// Nothing is ready.
    Nothing,
    /// The pipe is at its end.
    End,
    /// Something is ready, but this program has no descriptor to spare for the file: try again in
    /// a moment.
    NotNow,
}

/// Why and from where on the disk did not take the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    pub errno: Errno,
    pub at: u64,
}

/// The appending side of a log. There is one for each log.
#[derive(Debug)]
pub struct Writer {
    place: Place,
    spares: Option<Arc<Spares>>,
    streams: Streams,
    started_ms: u64,
    store: Store,
    stamps: Stamps,
    shared: Arc<Shared>,
    len: u64,
    quota: Quota,
    /// Where late output begins; the region before it changes no more.
    final_len: Option<u64>,
    gone: Gone,
    punched: Dropped,
    /// From here on nothing may be dropped: a pinned reader has not read it.
    keep_from: u64,
    shortage: Shortage,
}

/// Whether descriptors are missing for the files.
#[derive(Debug, Clone, Copy)]
enum Shortage {
    None,
    /// Since this time, in milliseconds.
    Since(u64),
    /// Nothing can be put off any more.
    Unbearable,
}

/// Where bytes go.
#[derive(Debug)]
enum Store {
    /// No file exists: no byte has come yet, or few, and those were kept.
    NoFile(Option<Keeping>),
    Disk(File),
    /// For good: one gap, then the newest bytes in memory.
    Memory(Failed),
}

/// The three ranges that can be gone.
#[derive(Debug, Default)]
struct Gone {
    middle: Range<u64>,
    late: Range<u64>,
    failed: Range<u64>,
}

/// How long a shortage of descriptors is waited out before it counts as a failure.
const PATIENCE_MS: u64 = 10_000;
/// What is read at once when the disk has failed.
const MEMORY_STEP: usize = 64 * 1024;

impl Writer {
    /// A log of a process that was started at this time, in milliseconds of unix time.
    pub fn new(place: Place, streams: Streams, quota: Quota, started_ms: u64) -> Self {
        let shared = Arc::<Shared>::default();
        Self {
            place,
            spares: None,
            streams,
            started_ms,
            store: Store::NoFile(None),
            stamps: Stamps::new(streams, started_ms, Arc::clone(&shared)),
            shared,
            len: 0,
            quota,
            final_len: None,
            gone: Gone::default(),
            punched: Dropped::default(),
            keep_from: u64::MAX,
            shortage: Shortage::None,
        }
    }

    /// Takes its files from these, so far as there are any.
    pub fn with_spares(self, spares: Option<Arc<Spares>>) -> Self {
        Self { spares, ..self }
    }

    /// Has no file while it is short and somebody keeps it.
    pub fn kept_by(self, keep: Option<Arc<dyn Keep>>) -> Self {
        Self { store: Store::NoFile(keep.map(Keeping::new)), ..self }
    }

    /// A reader of this log; any number can be made.
    pub fn reader(&self) -> Reader {
        let shared = Arc::clone(&self.shared);
        Reader::new(self.place.clone(), self.streams, self.started_ms, shared)
    }

    /// Appends at most `most` bytes that lie ready in `pipe`; never waits for the pipe.
    ///
    /// A disk that does not take them is no error of this call: the log goes on in memory.
    pub fn pull(&mut self, pipe: impl AsFd, stream: Stream, most: usize, now_ms: u64) -> Pulled {
        if let Store::Memory(_) = self.store {
            return self.pull_into_memory(pipe, stream, most, now_ms);
        }
        if let Some(pulled) = self.pull_few(&pipe, stream, most, now_ms) {
            return pulled;
        }
        match self.pull_onto_disk(&pipe, stream, most, now_ms) {
            Ok(0) => Pulled::End,
            Ok(count) => {
                if let Shortage::Since(_) = self.shortage {
                    self.shortage = Shortage::None;
                }
                self.len += count as u64;
                self.fit();
                Pulled::Bytes(count)
            }
            Err(Errno::AGAIN) => Pulled::Nothing,
            // Others end and give theirs back, so a shortage passes; the bytes wait in the pipe.
            Err(Errno::MFILE | Errno::NFILE) if self.is_patient(now_ms) => Pulled::NotNow,
            Err(errno) => {
                self.fail(errno);
                self.pull_into_memory(pipe, stream, most, now_ms)
            }
        }
    }

    /// What a snapshot may say of this log.
    pub fn extent(&self) -> Extent {
        let Gone { middle, late, failed } = &self.gone;
        let mut ranges = [middle.clone(), late.clone(), failed.clone()];
        ranges.sort_by_key(|range| range.start);
        Extent { len: self.len, dropped: Dropped::of(ranges) }
    }

    /// Gives back to the file system what has been published as dropped, and nothing else.
    pub fn give_back(&mut self, published: &Extent) {
        if published.dropped == self.punched {
            return;
        }
        if let Err(errno) = self.punch(&published.dropped) {
            // A log that cannot shrink must not grow either.
            self.fail(errno);
        }
        self.punched = published.dropped.clone();
    }

    /// Fixes the length of the output proper: what follows is late output with a quota of its own.
    /// Nobody keeps that: who holds an output open for long would hold the keeper, too.
    pub fn finish(&mut self) -> u64 {
        if let Store::NoFile(keeping) = &mut self.store {
            *keeping = None;
        }
        *self.final_len.get_or_insert(self.len)
    }

    /// Changes how much may be kept from now on.
    pub fn set_quota(&mut self, quota: Quota) {
        self.quota = quota;
        self.fit();
    }

    /// Drops nothing from this offset on, whatever the quota says, until told otherwise.
    pub fn keep_from(&mut self, offset: Option<u64>) {
        self.keep_from = offset.unwrap_or(u64::MAX);
    }

    /// Whoever drains takes what is there now: nothing is put off any more.
    pub fn hurry(&mut self) {
        self.shortage = Shortage::Unbearable;
    }

    /// How far it may get ahead of a reader that must miss nothing.
    pub fn room(&self) -> u64 {
        match self.store {
            Store::NoFile(_) | Store::Disk(_) => self.quota.bytes(),
            Store::Memory(_) => (TAIL - MEMORY_STEP) as u64,
        }
    }

    pub fn quota(&self) -> Quota {
        self.quota
    }

    /// What the disk did not take, if it failed.
    pub fn failed(&self) -> Option<Failed> {
        match self.store {
            Store::Memory(failed) => Some(failed),
            Store::NoFile(_) | Store::Disk(_) => None,
        }
    }

    /// What log and index take on disk, or where they are kept, but for what is dropped.
    pub fn kept(&self) -> u64 {
        let index = match &self.store {
            Store::Disk(_) => self.stamps.kept(),
            Store::NoFile(_) | Store::Memory(_) => 0,
        };
        self.len - self.extent().dropped.bytes() + index
    }

    fn pull_onto_disk(
        &mut self,
        pipe: impl AsFd,
        stream: Stream,
        most: usize,
        now_ms: u64,
    ) -> Result<usize, Errno> {
        if self.opens_something(stream, now_ms) {
            // The file appears with the first byte, and a stamp with its own: look before.
            match readiness(&pipe)? {
                Readiness::Bytes => self.open(stream, now_ms).map_err(|error| errno_of(&error))?,
                Readiness::Nothing => return Err(Errno::AGAIN),
                Readiness::End => return Ok(0),
            }
        }
        let Store::Disk(log) = &self.store else { return Err(Errno::BADF) };
        let most = most.min(usize::try_from(self.quota.step()).unwrap_or(usize::MAX));
        splice_into_file(pipe, log, self.len, most)
    }

    fn is_patient(&mut self, now_ms: u64) -> bool {
        match self.shortage {
            Shortage::None => self.shortage = Shortage::Since(now_ms),
            Shortage::Since(since) if now_ms.saturating_sub(since) < PATIENCE_MS => {}
            Shortage::Since(_) | Shortage::Unbearable => return false,
        }
        true
    }

    /// Whether the next byte needs a file or a stamp that is not there yet.
    fn opens_something(&self, stream: Stream, now_ms: u64) -> bool {
        match &self.store {
            Store::NoFile(_) => true,
            Store::Disk(_) => self.stamps.is_due(stream, now_ms),
            Store::Memory(_) => false,
        }
    }

    fn open(&mut self, stream: Stream, now_ms: u64) -> io::Result<()> {
        if let Store::NoFile(_) = self.store {
            self.store = Store::Disk(self.move_into_file()?);
        }
        match self.stamps.is_due(stream, now_ms) {
            true => self.stamps.begin(&self.place, self.len, stream, now_ms),
            false => Ok(()),
        }
    }

    fn create(&self) -> io::Result<File> {
        let path = self.place.log();
        let spare = self.spares.as_ref().and_then(|spares| spares.take(path));
        spare.map_or_else(|| create_file(path), Ok)
    }

    fn pull_into_memory(
        &mut self,
        pipe: impl AsFd,
        stream: Stream,
        most: usize,
        now_ms: u64,
    ) -> Pulled {
        let mut chunk = vec![0; most.min(MEMORY_STEP)];
        let count = match read_ready(pipe, &mut chunk) {
            Ok(count) => count,
            Err(pulled) => return pulled,
        };
        self.append_to_memory(&chunk[..count], stream, now_ms);
        Pulled::Bytes(count)
    }

    fn append_to_memory(&mut self, bytes: &[u8], stream: Stream, now_ms: u64) {
        self.stamps.begin_in_memory(self.len, stream, now_ms);
        self.len += bytes.len() as u64;
        match self.final_len {
            // The tail in memory is the end of the output proper; late output must not push it out.
            Some(final_len) if self.gone.failed.start < final_len => {
                self.gone.late = final_len..self.len;
            }
            _ => self.gone.failed.end = self.shared.tail.append(bytes, stream, self.keep_from),
        }
    }

    /// Marks as gone what does not fit, in the region that still grows.
    fn fit(&mut self) {
        let index = match &self.store {
            Store::Disk(_) => self.stamps.kept(),
            Store::NoFile(_) | Store::Memory(_) => return,
        };
        let start = self.final_len.unwrap_or(0);
        let gone = match self.final_len {
            None => &mut self.gone.middle,
            Some(_) => &mut self.gone.late,
        };
        let end = self.len.min(self.keep_from);
        if let Some(cut) = self.quota.cut(&(start..self.len), end, gone, index) {
            *gone = cut;
        }
    }

    fn punch(&mut self, dropped: &Dropped) -> Result<(), Errno> {
        let Store::Disk(log) = &self.store else { return Ok(()) };
        for range in dropped.ranges() {
            // Ranges grow at their end only: what begins alike was punched that far.
            let known = self.punched.ranges().iter().find(|known| known.start == range.start);
            let from = known.map_or(range.start, |known| known.end);
            if from < range.end {
                punch_hole(log, from, range.end - from)?;
            }
            self.stamps.give_back(range).map_err(|error| errno_of(&error))?;
        }
        Ok(())
    }

    fn fail(&mut self, errno: Errno) {
        self.shared.tail.begin(self.len);
        self.gone.failed = self.len..self.len;
        self.store = Store::Memory(Failed { errno, at: self.len });
        self.stamps.close();
    }
}

/// Reads at least one byte, or says why there is none.
fn read_ready(pipe: impl AsFd, into: &mut [u8]) -> Result<usize, Pulled> {
    match read(pipe, into) {
        Ok(count) if count > 0 => Ok(count),
        Err(Errno::AGAIN) => Err(Pulled::Nothing),
        // A pipe that cannot be read has no more to give.
        Ok(_) | Err(_) => Err(Pulled::End),
    }
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
