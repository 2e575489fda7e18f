//! The writing side of a log: pipe in, file out, within the quota.
//!
//! The owner of a writer publishes its [`Extent`] after each append. Only then may the writer free
//! the space of what that extent calls dropped, so no reader meets a hole that is not published.

mod resume;

use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use lastbyte_sys::Errno;
use lastbyte_sys::file::punch_hole;
use lastbyte_sys::pipe::{Readiness, read, readiness, splice_into_file};

use super::memory::TAIL;
use super::place::OpenLog;
use super::shared::Shared;
use super::short::MOST_BYTES;
use super::stamps::Stamps;
use super::{Dropped, Extent, LogFile, Quota, Reader, ShortLog, Stream};

pub use resume::Progress;

/// Whether the log records the stream of each byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    One,
    Split,
}

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pulled {
    Bytes(usize),
    /// Nothing is ready.
    Nothing,
    /// The pipe is at its end.
    End,
    /// Something is ready, but this program has no descriptor left for the file: try again in a
    /// moment.
    NotNow,
}

/// Why the disk did not take the output, and from which offset on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    pub errno: Errno,
    pub at: u64,
}

/// The writing side of a log. There is one for each log.
#[derive(Debug)]
pub struct Writer {
    destination: Destination,
    stamps: Stamps,
    shared: Arc<Shared>,
    len: u64,
    quota: Quota,
    /// Where late output begins; nothing before it is dropped any more.
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
    /// It does not matter: nothing waits for a descriptor any more.
    Ignored,
}

/// Where bytes go.
#[derive(Debug)]
enum Destination {
    /// `None` until the first byte, if the file could not be created ahead.
    Disk(Option<OpenLog>),
    /// Until the end: one gap, then the newest bytes in memory.
    Memory(Failed),
}

/// The three ranges that can be gone.
#[derive(Debug, Default)]
struct Gone {
    middle: Range<u64>,
    late: Range<u64>,
    failed: Range<u64>,
}

/// How long to wait for a descriptor before the shortage counts as a failure.
const PATIENCE_MS: u64 = 10_000;
/// How much is read at once after the disk has failed.
const MEMORY_STEP: usize = 64 * 1024;

impl Writer {
    /// The log of a process that was started at this time, in milliseconds of unix time.
    pub fn new(file: LogFile, streams: Streams, quota: Quota, started_ms: u64) -> Self {
        let LogFile { place, log, index } = file;
        let shared = Arc::new(Shared::new(place, streams, started_ms));
        Self {
            destination: Destination::Disk(log),
            stamps: Stamps::new(index, Arc::clone(&shared)),
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
        self.shared.place.number()
    }

    /// A reader of this log; any number can be made.
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.shared))
    }

    /// Appends at most `most` bytes that are ready in `pipe`; never waits for the pipe. If the disk
    /// fails, the log continues in memory.
    pub fn pull(&mut self, pipe: impl AsFd, stream: Stream, most: usize, now_ms: u64) -> Pulled {
        if let Destination::Memory(_) = self.destination {
            return self.pull_into_memory(pipe, stream, most, now_ms);
        }
        match self.pull_onto_disk(&pipe, stream, most, now_ms) {
            Ok(0) => Pulled::End,
            Ok(count) => {
                self.stored(count);
                Pulled::Bytes(count)
            }
            Err(Errno::AGAIN) => Pulled::Nothing,
            // A shortage passes when other processes end; meanwhile the bytes wait in the pipe.
            Err(Errno::MFILE | Errno::NFILE) if self.is_patient(now_ms) => Pulled::NotNow,
            Err(errno) => {
                self.fail(errno);
                self.pull_into_memory(pipe, stream, most, now_ms)
            }
        }
    }

    /// Appends these bytes, which are in no pipe. Returns false, with nothing appended, if this program
    /// has no descriptor left for the file: try again in a moment. If the disk fails, the log continues
    /// in memory.
    pub fn append(&mut self, bytes: &[u8], stream: Stream, now_ms: u64) -> bool {
        if bytes.is_empty() {
            return true;
        }
        let written = match &self.destination {
            Destination::Memory(_) => 0,
            Destination::Disk(_) => match self.make_ready(stream, now_ms) {
                Ok(()) => self.write_onto_disk(bytes),
                Err(error) => match errno_of(&error) {
                    Errno::MFILE | Errno::NFILE if self.is_patient(now_ms) => return false,
                    errno => {
                        self.fail(errno);
                        0
                    }
                },
            },
        };
        let rest = bytes[written..].chunks(MEMORY_STEP);
        rest.for_each(|bytes| self.keep_in_memory(bytes, stream, now_ms));
        true
    }

    /// The extent to publish.
    pub fn extent(&self) -> Extent {
        let Gone { middle, late, failed } = &self.gone;
        let dropped = Dropped::covering([middle, late, failed].map(Range::clone));
        Extent { len: self.len, dropped }
    }

    /// Frees the disk space of what has been published as dropped, and nothing else.
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

    /// Fixes the length of the output: what follows is late output with a quota of its own.
    pub fn finish(&mut self) -> u64 {
        *self.final_len.get_or_insert(self.len)
    }

    /// Ends a short log: readers get it from memory from now on, and its file can be reused. Returns
    /// the whole log; `None` if it is too long, or already in memory because the disk failed.
    pub fn settle(&self) -> Option<&ShortLog> {
        let short = self.short()?;
        Some(self.shared.short.get_or_init(|| Box::new(short)))
    }

    fn short(&self) -> Option<ShortLog> {
        let Destination::Disk(log) = &self.destination else { return None };
        let len = usize::try_from(self.len).ok().filter(|len| *len <= MOST_BYTES)?;
        let mut bytes = vec![0; len];
        if len > 0 {
            log.as_ref()?.file.read_exact_at(&mut bytes, 0).ok()?;
        }
        Some(ShortLog { bytes, stamps: self.stamps.few()? })
    }

    /// Its files, emptied, if the log is settled and its files were not removed.
    pub(super) fn into_emptied_file(self) -> Option<LogFile> {
        self.shared.short.get()?;
        let Destination::Disk(Some(log)) = self.destination else { return None };
        if !self.shared.let_go_of_file() {
            return None;
        }
        if self.len > 0 {
            log.file.set_len(0).ok()?;
        }
        let index = self.stamps.into_emptied_file().ok()?;
        Some(LogFile { place: self.shared.place.clone(), log: Some(log), index })
    }

    /// Keeps only head and tail from now on, because all logs together are too large.
    pub fn squeeze(&mut self) {
        if self.quota.bytes() > Quota::SQUEEZED.bytes() {
            self.quota = Quota::SQUEEZED;
            self.fit();
        }
    }

    /// Drops nothing from this offset on, whatever the quota says, until the next call.
    pub fn keep_from(&mut self, offset: Option<u64>) {
        self.keep_from = offset.unwrap_or(u64::MAX);
    }

    /// From now on a shortage of descriptors counts as a failure at once.
    pub fn hurry(&mut self) {
        self.shortage = Shortage::Ignored;
    }

    /// How far the log may get ahead of a reader that must miss nothing.
    pub fn max_lead(&self) -> u64 {
        match self.destination {
            Destination::Disk(_) => self.quota.bytes(),
            Destination::Memory(_) => (TAIL - MEMORY_STEP) as u64,
        }
    }

    /// Why the disk failed, if it did.
    pub fn failed(&self) -> Option<Failed> {
        match self.destination {
            Destination::Memory(failed) => Some(failed),
            Destination::Disk(_) => None,
        }
    }

    /// How many bytes log and index take, without what is dropped.
    pub fn kept(&self) -> u64 {
        self.len - self.extent().dropped.bytes() + self.stamps.kept()
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
        let Destination::Disk(Some(log)) = &self.destination else { return Err(Errno::BADF) };
        let most = most.min(usize::try_from(self.quota.step()).unwrap_or(usize::MAX));
        splice_into_file(pipe, &log.file, self.len, most)
    }

    /// Returns how many bytes were written. If that is not all, the disk has failed.
    fn write_onto_disk(&mut self, bytes: &[u8]) -> usize {
        let mut written = 0;
        while written < bytes.len() {
            let Destination::Disk(Some(log)) = &self.destination else { break };
            match log.file.write_at(&bytes[written..], self.len) {
                Ok(count) if count > 0 => {
                    written += count;
                    self.stored(count);
                }
                Ok(_) => {
                    self.fail(Errno::IO);
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.fail(errno_of(&error));
                    break;
                }
            }
        }
        written
    }

    fn stored(&mut self, count: usize) {
        if let Shortage::Since(_) = self.shortage {
            self.shortage = Shortage::None;
        }
        self.len += count as u64;
        self.fit();
    }

    fn is_patient(&mut self, now_ms: u64) -> bool {
        match self.shortage {
            Shortage::None => self.shortage = Shortage::Since(now_ms),
            Shortage::Since(since) if now_ms.saturating_sub(since) < PATIENCE_MS => {}
            Shortage::Since(_) | Shortage::Ignored => return false,
        }
        true
    }

    fn make_ready(&mut self, stream: Stream, now_ms: u64) -> io::Result<()> {
        if self.len == 0 {
            self.make_file()?;
        }
        if self.stamps.is_due(stream, now_ms) {
            self.stamps.begin(self.len, stream, now_ms)?;
        }
        Ok(())
    }

    /// Creates the file, unless it is open and still where readers look for it.
    fn make_file(&mut self) -> io::Result<()> {
        let path = self.shared.place.log();
        if let Destination::Disk(Some(log)) = &self.destination
            && log.is_at(path)
        {
            self.shared.file.get_or_init(|| log.id());
            return Ok(());
        }
        // The index was removed with it, and what is at the path now is not ours.
        self.stamps.close();
        self.shared.let_go_of_file();
        let log = OpenLog::create(path)?;
        self.shared.has_file();
        self.shared.file.get_or_init(|| log.id());
        self.destination = Destination::Disk(Some(log));
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
            // A pipe that cannot be read is at its end.
            Ok(_) | Err(_) => return Pulled::End,
        };
        self.keep_in_memory(&chunk[..count], stream, now_ms);
        Pulled::Bytes(count)
    }

    fn keep_in_memory(&mut self, bytes: &[u8], stream: Stream, now_ms: u64) {
        self.stamps.begin_in_memory(self.len, stream, now_ms);
        self.len += bytes.len() as u64;
        match self.final_len {
            // The bytes in memory are the end of the output; late output must not push them out.
            Some(final_len) if self.gone.failed.start < final_len => {
                self.gone.late = final_len..self.len;
            }
            _ => {
                self.gone.failed.end = self.shared.memory.append(bytes, self.keep_from);
            }
        }
    }

    /// Marks as gone what does not fit, in the region that still grows.
    fn fit(&mut self) {
        if let Destination::Memory(_) = self.destination {
            return;
        }
        let start = self.final_len.unwrap_or(0);
        let gone = match self.final_len {
            None => &mut self.gone.middle,
            Some(_) => &mut self.gone.late,
        };
        let end = self.len.min(self.keep_from);
        if let Some(cut) = self.quota.cut(&(start..self.len), end, gone, self.stamps.kept()) {
            *gone = cut;
        }
    }

    fn punch(&mut self, dropped: &Dropped) -> Result<(), Errno> {
        let Destination::Disk(Some(log)) = &self.destination else { return Ok(()) };
        for range in dropped.ranges() {
            // Ranges grow only at their end: one with the same start was punched up to its old end.
            let known = self.punched.ranges().iter().find(|known| known.start == range.start);
            let from = known.map_or(range.start, |known| known.end);
            if from < range.end {
                punch_hole(&log.file, from, range.end - from)?;
            }
            self.stamps.give_back(range).map_err(|error| errno_of(&error))?;
        }
        Ok(())
    }

    fn fail(&mut self, errno: Errno) {
        self.shared.memory.begin(self.len);
        self.gone.failed = self.len..self.len;
        self.destination = Destination::Memory(Failed { errno, at: self.len });
        self.stamps.close();
    }
}

fn errno_of(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
