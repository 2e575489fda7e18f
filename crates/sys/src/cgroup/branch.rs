//! A branch: the folder that has the leaves of one engine.
//!
//! Its owner holds a lock on the folder. The kernel lets go of it when the owner is gone, however
//! it went, so that what a dead run left behind can be told from what a live one uses, whatever
//! became of its pid.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat};
use rustix::io::Errno;

use super::leaf::{Leaf, name, remove, subfolders};

/// Every branch's name begins like this.
pub(super) const PREFIX: &str = "lastbyte-";

/// Removed when dropped, unless somebody still lives in one of its leaves.
#[derive(Debug)]
pub struct Branch {
    folder: PathBuf,
    /// Its lock says that the owner lives.
    _lock: OwnedFd,
}

impl Branch {
    /// Makes a branch below `folder`, with a name of its own.
    pub fn make(folder: &Path) -> io::Result<Self> {
        // A name is never used twice, so that nobody removes another's in the belief it is his.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let folder = folder.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match fs::create_dir(&folder) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            // Between the two lines somebody who starts may have taken it for a leftover.
            if let Some(lock) = lock(&folder)? {
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the leaf with this number.
    pub fn leaf(&self, number: u64) -> io::Result<Leaf> {
        Leaf::make(self.folder.join(number.to_string()))
    }

    /// Removes the folder as soon as it has no leaf; the branch must not be used afterwards.
    pub fn remove_if_bare(&self) {
        // What is left of it is removed by the next start.
        _ = fs::remove_dir(&self.folder);
    }
}

impl Drop for Branch {
    fn drop(&mut self) {
        self.remove_if_bare();
    }
}

/// Removes the branches below `folder` whose owners are gone, as far as nobody lives in them.
pub fn sweep(folder: &Path) -> io::Result<()> {
    for branch in subfolders(folder)? {
        if !name(&branch).starts_with(PREFIX.as_bytes()) {
            continue;
        }
        // What cannot be removed now is in use, or for the next start to try.
        if let Ok(Some(_lock)) = lock(&branch) {
            for leaf in subfolders(&branch).unwrap_or_default() {
                _ = remove(&leaf);
            }
            _ = fs::remove_dir(&branch);
        }
    }
    Ok(())
}

/// The lock on a folder; `None` when somebody else has it or the folder is gone.
pub(super) fn lock(folder: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(folder, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        answer => answer?,
    }
    // Locked, but is it still what has this name?
    let inode = fs::metadata(folder).ok().map(|metadata| metadata.ino());
    Ok((inode == Some(fstat(&opened)?.st_ino)).then_some(opened))
}
