//! Keeps a journal to one writer: the writer locks a file beside it.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Another engine has the lock.
#[derive(Debug, thiserror::Error)]
#[error("another engine writes the journal {path}", path = path.display())]
struct InUse {
    path: PathBuf,
}

/// The lock file of this journal.
pub(super) fn lock_path(journal: &Path) -> PathBuf {
    journal.with_extension("lock")
}

/// Locks a journal while the file is open; the kernel releases it, however the program ends.
pub(super) fn take_lock(journal: &Path) -> io::Result<File> {
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(lock_path(journal))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let error = InUse { path: journal.to_owned() };
            Err(io::Error::new(io::ErrorKind::ResourceBusy, error))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}
