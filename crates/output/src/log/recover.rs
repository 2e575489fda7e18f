//! What the files say of a log whose writer is gone.
//!
//! The file has every byte that was spliced into it, whatever became of the writer; a log without
//! one is as long as what was kept of it. Of what was dropped, the file knows its holes: they are
//! the only ranges that read as zeros which nobody wrote.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use lastbyte_sys::file::{next_data, next_hole};

use super::quota::BLOCK;
use super::{Dropped, Extent, Place, ShortLog};

/// What there is of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    pub extent: Extent,
    /// What log and index take on disk.
    pub disk_bytes: u64,
    /// The bytes themselves, where no file has them.
    pub short: Option<ShortLog>,
}

impl Place {
    /// A log whose output proper ended in this extent: those bytes of it that the file does not
    /// have are called dropped, and what lies past it is late output. `short` is what was kept of
    /// it before there was a file.
    pub fn recover(&self, ended: &Extent, short: ShortLog) -> io::Result<Recovered> {
        let log = match self.open() {
            Err(_) if !short.is_empty() => None,
            log => log?,
        };
        let file_len = log.as_ref().map_or(Ok(0), |log| log.metadata().map(|about| about.len()))?;
        // A file that has no more may be one that was just being made.
        let Some(log) = log.filter(|_| file_len > short.len()) else {
            return Ok(without_file(ended, short));
        };
        let missing = file_len.min(ended.len)..ended.len;
        let late = holes(&log, ended.len..file_len)?;
        let known = ended.dropped.ranges().iter().cloned();
        let dropped = Dropped::covering(known.chain([missing]).chain(late));
        let extent = Extent { len: ended.len.max(file_len), dropped };
        Ok(Recovered { extent, disk_bytes: self.disk_bytes(&log)?, short: None })
    }

    /// A log of which nothing else is known: as far as it goes.
    pub fn recover_lost(&self, short: ShortLog) -> io::Result<Recovered> {
        self.recover(&Extent::default(), short)
    }

    fn open(&self) -> io::Result<Option<File>> {
        match File::open(self.log()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => file.map(Some),
        }
    }

    fn disk_bytes(&self, log: &File) -> io::Result<u64> {
        let index = self.index().metadata().map_or(0, |index| on_disk(&index));
        Ok(on_disk(&log.metadata()?) + index)
    }
}

fn without_file(ended: &Extent, short: ShortLog) -> Recovered {
    let missing = short.len().min(ended.len)..ended.len;
    let known = ended.dropped.ranges().iter().cloned();
    let dropped = Dropped::covering(known.chain([missing]));
    let extent = Extent { len: ended.len.max(short.len()), dropped };
    let disk_bytes = short.len();
    Recovered { extent, disk_bytes, short: Some(short).filter(|short| !short.is_empty()) }
}

/// Blocks count 512 bytes. The last one may be larger than what is in it.
fn on_disk(file: &std::fs::Metadata) -> u64 {
    (file.blocks() * 512).min(file.len())
}

/// The holes of a range. A file system of large blocks zeroes what a hole has of a block and keeps
/// the rest as data, so that there a hole may be wider than it looks.
fn holes(log: &File, range: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let block = log.metadata()?.blksize();
    let margin = if block > BLOCK { block } else { 0 };
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let Some(start) = next_hole(log, at)?.filter(|start| *start < range.end) else { break };
        let end = next_data(log, start)?.unwrap_or(range.end).min(range.end);
        let wide = start.saturating_sub(margin).max(range.start)..(end + margin).min(range.end);
        found.push(wide);
        at = end;
    }
    Ok(found)
}
