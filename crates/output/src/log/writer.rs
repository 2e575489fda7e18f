//! The one side that appends: pipe in, file out, within the quota.
//!
//! Whoever owns a writer publishes its [`Extent`] after each append, and only then lets it give
//! back what that extent calls dropped: so no reader meets a hole it was not told of.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use lastbyte_sys::Errno;
use lastbyte_sys::file::punch_hole;
use lastbyte_sys::pipe::{Readiness, read, readiness, splice_into_file};

use super::memory::TAIL;
use super::place::{create_file, id_of, is_at};
use super::shared::Shared;
use super::short::MOST_BYTES;
use super::stamps::Stamps;
use super::{Dropped, Extent, LogFile, Place, Quota, Reader, ShortLog, Stream};

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
    /// `None` until the first byte, if the file could not be created ahead.
    Disk(Option<File>),
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
    pub fn new(file: LogFile, streams: Streams, quota: Quota, started_ms: u64) -> Self {
        let (LogFile { place, log, index }, shared) = (file, Arc::<Shared>::default());
        Self {
            place,
            streams,
            started_ms,
            store: Store::Disk(log),
            stamps: Stamps::new(streams, started_ms, index, Arc::clone(&shared)),
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

    /// The number of its file.
    pub fn number(&self) -> u64 {
        self.place.number()
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
        let dropped = Dropped::covering([middle, late, failed].map(Range::clone));
        Extent { len: self.len, dropped }
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
    pub fn finish(&mut self) -> u64 {
        *self.final_len.get_or_insert(self.len)
    }

    /// Ends a short log: readers get it from memory from now on, and its file can be used again.
    /// Returns the whole log; `None` if it is too long, or already in memory because the disk failed.
    pub fn settle(&self) -> Option<&ShortLog> {
        let short = self.short()?;
        Some(self.shared.short.get_or_init(|| Box::new(short)))
    }

    fn short(&self) -> Option<ShortLog> {
        let Store::Disk(log) = &self.store else { return None };
        let len = usize::try_from(self.len).ok().filter(|len| *len <= MOST_BYTES)?;
        let mut bytes = vec![0; len];
        if len > 0 {
            log.as_ref()?.read_exact_at(&mut bytes, 0).ok()?;
        }
        Some(ShortLog { bytes, stamps: self.stamps.few()? })
    }

    /// Its files, emptied, if the log is settled and not forgotten.
    pub(super) fn into_emptied_file(self) -> Option<LogFile> {
        self.shared.short.get()?;
        let Store::Disk(Some(log)) = self.store else { return None };
        if !self.shared.let_go_of_file() {
            return None;
        }
        if self.len > 0 {
            log.set_len(0).ok()?;
        }
        let index = self.stamps.into_emptied_file().ok()?;
        Some(LogFile { place: self.place, log: Some(log), index })
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
            Store::Disk(_) => self.quota.bytes(),
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
            Store::Disk(_) => None,
        }
    }

    /// What log and index take on disk, but for what is dropped.
    pub fn kept(&self) -> u64 {
        let index = match &self.store {
            Store::Disk(_) => self.stamps.kept(),
            Store::Memory(_) => 0,
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
        if self.len == 0 || self.stamps.is_due(stream, now_ms) {
            // The file is checked before the first byte, and a stamp is written before its bytes.
            match readiness(&pipe)? {
                Readiness::Bytes => {
                    self.make_ready(stream, now_ms).map_err(|error| errno_of(&error))?;
                }
                Readiness::Nothing => return Err(Errno::AGAIN),
                Readiness::End => return Ok(0),
            }
        }
        let Store::Disk(Some(log)) = &self.store else { return Err(Errno::BADF) };
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

    fn make_ready(&mut self, stream: Stream, now_ms: u64) -> io::Result<()> {
        if self.len == 0 {
            self.make_file()?;
        }
        if self.stamps.is_due(stream, now_ms) {
            self.stamps.begin(&self.place, self.len, stream, now_ms)
        } else {
            Ok(())
        }
    }

    /// Creates the file, unless it is open and still where readers look for it.
    fn make_file(&mut self) -> io::Result<()> {
        let path = self.place.log();
        let mut file = match &self.store {
            Store::Disk(Some(log)) => Some(id_of(log)?),
            Store::Disk(None) | Store::Memory(_) => None,
        };
        if !file.is_some_and(|file| is_at(file, path)) {
            // The index was removed with it, and whatever is at the path is not ours.
            self.stamps.close();
            self.shared.let_go_of_file();
            let log = create_file(path)?;
            self.shared.has_file();
            file = Some(id_of(&log)?);
            self.store = Store::Disk(Some(log));
        }
        self.shared.file.get_or_init(|| file);
        Ok(())
    }

    fn pull_into_memory(
        &mut self,
        pipe: impl AsFd,
        stream: Stream,
        most: usize,
        now_ms: u64,
    ) -> Pulled {
        let mut chunk = vec![0; most.min(MEMORY_STEP)];
        let count = match read(pipe, &mut chunk) {
            Ok(count) if count > 0 => count,
            Err(Errno::AGAIN) => return Pulled::Nothing,
            // A pipe that cannot be read has no more to give.
            Ok(_) | Err(_) => return Pulled::End,
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
            Store::Memory(_) => return,
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
        let Store::Disk(Some(log)) = &self.store else { return Ok(()) };
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

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
