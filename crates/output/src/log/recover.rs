//! What the files say of a log whose writer is gone.
//!
//! The file has every byte that was spliced into it, whatever became of the writer. Of what was
//! dropped, the file knows its holes: they are the only ranges that read as zeros which nobody
//! wrote.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use lastbyte_sys::file::{next_data, next_hole};

use super::quota::BLOCK;
use super::{Dropped, Extent, Place};

/// What there is of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    pub extent: Extent,
    /// What log and index take on disk.
    pub disk_bytes: u64,
}

impl Place {
    /// A log whose output proper ended in this extent, the empty one if nothing is known of it: those bytes of it that the file does not
    /// have are called dropped, and what lies past it is late output.
    pub fn recover(&self, ended: &Extent) -> io::Result<Recovered> {
        let Some(log) = self.open()? else {
            return Ok(Recovered { extent: ended.left_in(0), disk_bytes: 0 });
        };
        let left = ended.left_in(log.metadata()?.len());
        let late = holes(&log, ended.len..left.len)?;
        let dropped = Dropped::covering(left.dropped.ranges().iter().cloned().chain(late));
        let disk_bytes = self.disk_bytes(&log)?;
        Ok(Recovered { extent: Extent { dropped, ..left }, disk_bytes })
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
