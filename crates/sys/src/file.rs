//! Holes in files, and a rename that replaces nothing.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{CWD, FallocateFlags, RenameFlags, SeekFrom, fallocate, renameat_with, seek};
use rustix::io::Errno;

/// Returns the blocks of a range to the file system. The file keeps its length and offsets; the
/// range reads as zeros.
pub fn punch_hole(file: impl AsFd, offset: u64, len: u64) -> Result<(), Errno> {
    fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len)
}

/// The first offset at or after `from` that is not in a hole; `None` if only holes follow.
///
/// Moves the file position, which callers that read and write at offsets do not use.
pub fn next_data(file: impl AsFd, from: u64) -> Result<Option<u64>, Errno> {
    sought(seek(file, SeekFrom::Data(from)))
}

/// The first offset at or after `from` that is in a hole, at the latest the end of the file; `None`
/// if `from` is past the end. Moves the file position, as [`next_data`] does.
pub fn next_hole(file: impl AsFd, from: u64) -> Result<Option<u64>, Errno> {
    sought(seek(file, SeekFrom::Hole(from)))
}

/// Renames a file, unless there is one with the new name. Not every file system can do this (NFS).
pub fn rename_new(from: &Path, to: &Path) -> Result<(), Errno> {
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)
}

fn sought(answer: Result<u64, Errno>) -> Result<Option<u64>, Errno> {
    match answer {
        Ok(offset) => Ok(Some(offset)),
        Err(Errno::NXIO) => Ok(None),
        Err(errno) => Err(errno),
    }
}
