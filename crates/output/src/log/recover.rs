//! A log whose writer is gone, as its files show it.
//!
//! The file has every byte that was spliced into it, whatever happened to the writer. Its holes show
//! what was dropped: no command wrote the zeros that they read as.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;

use lastbyte_sys::file::{next_data, next_hole};

use super::quota::BLOCK;
use super::{Dropped, Extent, Place};

/// What is left of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    pub extent: Extent,
    /// The size of log and index on disk.
    pub disk_bytes: u64,
}

impl Place {
    /// Looks at a log whose output ended in this extent, the empty one if that is not known. Bytes of
    /// it that the file does not have are called dropped; what lies after it is late output.
    pub fn recover(&self, ended: &Extent) -> io::Result<Recovered> {
        let log = match File::open(self.log()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Recovered { extent: ended.left_in(0), disk_bytes: 0 });
            }
            log => log?,
        };
        let left = ended.left_in(log.metadata()?.len());
        let late = wide_holes(&log, ended.len..left.len)?;
        let dropped = Dropped::covering(left.dropped.ranges().iter().cloned().chain(late));
        let index = self.index().metadata().map_or(0, |index| on_disk(&index));
        let disk_bytes = on_disk(&log.metadata()?) + index;
        Ok(Recovered { extent: Extent { dropped, ..left }, disk_bytes })
    }
}

/// A block has 512 bytes. The last one may be larger than its contents.
fn on_disk(file: &std::fs::Metadata) -> u64 {
    (file.blocks() * 512).min(file.len())
}

/// The holes in a range, as wide as they can be. A file system with large blocks zeroes a part of a
/// block and keeps the block as data, so a hole may be wider than it looks there.
pub(super) fn wide_holes(log: &File, range: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let block = log.metadata()?.blksize();
    let margin = if block > BLOCK { block } else { 0 };
    let widen = |hole: Range<u64>| {
        hole.start.saturating_sub(margin).max(range.start)..(hole.end + margin).min(range.end)
    };
    Ok(holes(log, range.clone())?.into_iter().map(widen).collect())
}

/// The holes in a range that the file system shows.
pub(super) fn holes(file: &File, range: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    let mut found = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let Some(start) = next_hole(file, at)?.filter(|start| *start < range.end) else { break };
        let end = next_data(file, start)?.unwrap_or(range.end).min(range.end);
        found.push(start..end);
        at = end;
    }
    Ok(found)
}
