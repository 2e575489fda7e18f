//! A log whose writer is gone, as its files show it.
//!
//! The file has every byte that was spliced into it, whatever happened to the writer. Its holes show
//! what was dropped: no command wrote the zeros that they read as.
//!
//! If the machine goes down, the file has what its kernel had written by then. ext4 may have written
//! the new length of a file and not the bytes: they read as zeros, in a hole or in the last block.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::SystemTime;

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
    ///
    /// If the machine went down, `unsynced_since` says which files may not have been on disk. Zeros at
    /// the end of such a file are called dropped, even if the command wrote them.
    pub fn recover(
        &self,
        ended: &Extent,
        unsynced_since: Option<SystemTime>,
    ) -> io::Result<Recovered> {
        let log = match File::open(self.log()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Recovered { extent: ended.left_in(0), disk_bytes: 0 });
            }
            log => log?,
        };
        let metadata = log.metadata()?;
        let left = ended.left_in(metadata.len());
        let mut gaps = wide_holes(&log, ended.len..left.len)?;
        let modified = metadata.modified()?;
        if unsynced_since.is_some_and(|since| modified >= since) {
            gaps.extend(wide_holes(&log, 0..ended.len.min(metadata.len()))?);
            gaps.push(zeros_at_end(&log, metadata.len())?);
        }
        let dropped = Dropped::covering(left.dropped.ranges().iter().cloned().chain(gaps));
        let index = self.index().metadata().map_or(0, |index| on_disk(&index));
        let disk_bytes = on_disk(&metadata) + index;
        Ok(Recovered { extent: Extent { dropped, ..left }, disk_bytes })
    }
}

/// The zeros that a file of this length ends with.
fn zeros_at_end(file: &File, len: u64) -> io::Result<Range<u64>> {
    let mut buffer = vec![0; 64 * 1024];
    let mut end = len;
    while end > 0 {
        let start = end.saturating_sub(buffer.len() as u64);
        let piece = &mut buffer[..(end - start) as usize];
        file.read_exact_at(piece, start)?;
        if let Some(last) = piece.iter().rposition(|byte| *byte != 0) {
            return Ok(start + last as u64 + 1..len);
        }
        end = start;
    }
    Ok(0..len)
}

/// A block has 512 bytes. The last one may be larger than its contents.
fn on_disk(file: &std::fs::Metadata) -> u64 {
    (file.blocks() * 512).min(file.len())
}

/// The holes in a range, as wide as they can be. A file system with large blocks zeroes a part of a
/// block and keeps the block as data, so a hole may be wider than it looks there.
pub(super) fn wide_holes(log: &File, range: Range<u64>) -> io::Result<Vec<Range<u64>>> {
    if range.is_empty() {
        return Ok(Vec::new());
    }
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
