//! Files in memory (memfd) that are filled at their end and read from their own position.
//!
//! Length, position and seal belong to the open file, not to the program that has a descriptor of it.
//! So another program that gets a descriptor goes on exactly where the last one was stopped.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    MemfdFlags, SealFlags, SeekFrom, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate,
    memfd_create, seek, tell,
};
use rustix::io::{Errno, pread, pwrite};

use crate::pipe::retry;

/// An empty file.
pub fn create(name: &str) -> Result<OwnedFd, Errno> {
    // A kernel can be told to refuse files that could be executed (vm.memfd_noexec). One before 6.3
    // does not know the flag.
    match memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING),
        file => file,
    }
}

pub fn len(file: impl AsFd) -> Result<u64, Errno> {
    fstat(file).map(|file| file.st_size.unsigned_abs())
}

/// Where the next read or splice begins. May be past the end.
pub fn position(file: impl AsFd) -> Result<u64, Errno> {
    tell(file)
}

pub fn set_position(file: impl AsFd, position: u64) -> Result<(), Errno> {
    seek(file, SeekFrom::Start(position)).map(|_| ())
}

/// Appends these bytes to a file of this length, or nothing. A program that is killed meanwhile may
/// have appended the first of them.
pub fn append(file: impl AsFd, len: u64, bytes: &[u8]) -> Result<(), Errno> {
    let mut done = 0;
    while done < bytes.len() {
        match retry(|| pwrite(&file, &bytes[done..], len + done as u64)) {
            Ok(count) => done += count,
            Err(errno) => {
                ftruncate(&file, len)?;
                return Err(errno);
            }
        }
    }
    Ok(())
}

/// Writes over bytes that are there.
pub fn write_at(file: impl AsFd, bytes: &[u8], offset: u64) -> Result<usize, Errno> {
    retry(|| pwrite(&file, bytes, offset))
}

/// Reads at an offset, without moving the position. `Ok(0)` is the end.
pub fn read_at(file: impl AsFd, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
    retry(|| pread(&file, &mut *into, offset))
}

/// From now on nothing can be appended.
pub fn seal(file: impl AsFd) -> Result<(), Errno> {
    fcntl_add_seals(file, SealFlags::GROW)
}

pub fn is_sealed(file: impl AsFd) -> Result<bool, Errno> {
    fcntl_get_seals(file).map(|seals| seals.contains(SealFlags::GROW))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_has_the_same_length_position_and_seal() {
        let file = create("test").unwrap();
        let other = file.try_clone().unwrap();
        append(&file, 0, b"hello ").unwrap();
        append(&other, 6, b"world").unwrap();
        set_position(&file, 3).unwrap();
        assert_eq!((len(&other), position(&other)), (Ok(11), Ok(3)));
        let mut bytes = [0; 20];
        assert_eq!(read_at(&other, &mut bytes, 4), Ok(7));
        assert_eq!((&bytes[..7], position(&file)), (&b"o world"[..], Ok(3)));
        assert_eq!(is_sealed(&file), Ok(false));
        seal(&other).unwrap();
        assert_eq!((is_sealed(&file), append(&file, 11, b"!")), (Ok(true), Err(Errno::PERM)));
        assert_eq!(len(&file), Ok(11));
        set_position(&file, 12).unwrap();
        assert_eq!(position(&other), Ok(12), "past the end");
    }
}
