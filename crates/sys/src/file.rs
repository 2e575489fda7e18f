//! Files that give back their middle.

use std::os::fd::AsFd;

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;

/// Gives the blocks of a range back to the file system. The file keeps its length and offsets;
/// the range reads as zeros from now on.
pub fn punch_hole(file: impl AsFd, offset: u64, len: u64) -> Result<(), Errno> {
    fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)
}

/// The first offset from `from` on that is not in a hole; `None` when only holes follow.
///
/// Moves the position of the open file, which callers that read and write at offsets do not use.
pub fn next_data(file: impl AsFd, from: u64) -> Result<Option<u64>, Errno> {
    sought(seek(file, SeekFrom::Data(from)))
}

/// The first offset from `from` on that is in a hole, the end of the file at the latest; `None`
/// when `from` lies past that. Moves the position of the open file, as [`next_data`] does.
pub fn next_hole(file: impl AsFd, from: u64) -> Result<Option<u64>, Errno> {
    sought(seek(file, SeekFrom::Hole(from)))
}

fn sought(answer: Result<u64, Errno>) -> Result<Option<u64>, Errno> {
    match answer {
        Ok(offset) => Ok(Some(offset)),
        Err(Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno),
    }
}
