//! Going on with a log whose writer died with its program, at any instant.
//!
//! Almost everything is in the files. The log has every byte that was spliced into it, its holes are
//! what the quota dropped, and the index has a stamp for each byte. What was dropped and published but
//! not yet freed is there again, and is dropped at the next cut. Until then the log can be larger than
//! its quota by what was appended last.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::Path;

use lastbyte_sys::Errno;

use super::{Destination, Gone, Stamps, Writer};
use crate::log::place::OpenLog;
use crate::log::recover::wide_holes;
use crate::log::{LogFile, Place, Quota, Streams};

/// What the files of a log do not show. Its owner saves it where it outlives the program, before it
/// publishes the extent that goes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// How long the log was at least. A file that is shorter has lost the rest, or never had it.
    pub len: u64,
    /// Where late output begins, if the process has ended.
    pub final_len: Option<u64>,
    /// Why the disk failed, if it did.
    pub failed: Option<Errno>,
}

impl Writer {
    /// What to save for [`Writer::resume`].
    pub fn progress(&self) -> Progress {
        let failed = self.failed().map(|failed| failed.errno);
        Progress { len: self.len, final_len: self.final_len, failed }
    }

    /// Goes on with a log whose writer is gone. If the disk had failed, the bytes that were only in
    /// memory are gone: they are reported as dropped, and the log goes on in memory. The same is true
    /// of bytes that are missing from the file for any other reason. A log without a file is empty,
    /// and gets one at its first byte.
    pub fn resume(
        place: Place,
        streams: Streams,
        quota: Quota,
        started_ms: u64,
        progress: Progress,
    ) -> io::Result<Self> {
        let log = open_if_there(place.log())?.map(OpenLog::new).transpose()?;
        let index = open_if_there(&place.index())?;
        if log.is_none() && index.is_some() {
            // Its log was removed. The next one creates an index of its own.
            fs::remove_file(place.index())?;
        }
        let index = index.filter(|_| log.is_some());
        let mut writer =
            Self::new(LogFile { log, ..LogFile::at(place) }, streams, quota, started_ms);
        writer.final_len = progress.final_len;
        if let Destination::Disk(Some(log)) = &writer.destination {
            writer.len = log.file.metadata()?.len();
            writer.gone = Gone::found_in(&log.file, writer.len, progress.final_len)?;
            if writer.len > 0 {
                writer.shared.file.get_or_init(|| log.id());
            }
        }
        writer.stamps = Stamps::resume(index, writer.shared.clone(), writer.len)?;
        writer.miss(progress);
        Ok(writer)
    }

    /// Continues in memory if the disk had failed, or if bytes are missing.
    fn miss(&mut self, progress: Progress) {
        let least = progress.len.max(progress.final_len.unwrap_or(0));
        let errno = match progress.failed {
            None if least <= self.len => return,
            failed => failed.unwrap_or(Errno::IO),
        };
        self.fail(errno);
        self.len = self.len.max(least);
        self.gone.failed.end = self.len;
        self.shared.memory.forget_until(self.len);
    }
}

impl Gone {
    /// What the quota dropped from a file of this length.
    fn found_in(log: &File, len: u64, final_len: Option<u64>) -> io::Result<Self> {
        let late = final_len.unwrap_or(len).min(len);
        let span = |range| wide_holes(log, range).map(|holes| span(&holes));
        Ok(Self { middle: span(0..late)?, late: span(late..len)?, failed: 0..0 })
    }
}

/// From the first hole to the end of the last: there is one range, but a file system with large blocks
/// can show it as several.
fn span(holes: &[Range<u64>]) -> Range<u64> {
    match holes {
        [first, .., last] => first.start..last.end,
        [only] => only.clone(),
        [] => 0..0,
    }
}

fn open_if_there(path: &Path) -> io::Result<Option<File>> {
    match File::options().read(true).write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        file => file.map(Some),
    }
}
