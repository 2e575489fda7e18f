//! A parent: the folder that contains the cgroups of one engine.
//!
//! Its owner holds a lock on the folder. The kernel releases the lock when the owner exits, however
//! it exits. So the leftovers of a dead run can be told from the folders of a live one, even if its
//! pid has been reused.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat};
use rustix::io::Errno;

use super::controllers::{Controller, enable_below};
use super::group::{Cgroup, remove, state_at, subfolders};

/// The prefix of every parent's name.
const PREFIX: &str = "lastbyte-";

/// Removed when dropped, unless a process still runs in one of its cgroups.
#[derive(Debug)]
pub struct ParentCgroup {
    folder: PathBuf,
    /// Held as long as the owner lives.
    _lock: OwnedFd,
}

impl ParentCgroup {
    /// Creates a parent below `folder`, with a unique name. Its cgroups account memory, if that can be.
    pub fn make(folder: &Path) -> io::Result<Self> {
        Self::with_controllers(folder, &[Controller::Memory])
    }

    /// As [`ParentCgroup::make`], for cgroups with those of these controllers that can be had.
    pub fn with_controllers(folder: &Path, controllers: &[Controller]) -> io::Result<Self> {
        // Never reuse a name, so that nobody removes another owner's folder as its own.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let folder = folder.join(format!("{PREFIX}{}-{number}", std::process::id()));
            match fs::create_dir(&folder) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            }
            // Another process that starts between the two calls may take the folder for a leftover.
            if let Some(lock) = lock(&folder)? {
                // For trees below it. Without them less is known of an ending, and fewer limits
                // are the kernel's.
                _ = enable_below(&folder, controllers);
                return Ok(Self { folder, _lock: lock });
            }
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates the cgroup with this number.
    pub fn cgroup(&self, number: u64) -> io::Result<Cgroup> {
        let folder = self.folder.join(number.to_string());
        fs::create_dir(&folder)?;
        Ok(Cgroup::at(folder))
    }

    /// Removes the folder if it has no cgroup. The parent must not be used afterwards.
    pub fn remove_if_bare(&self) {
        // The next start removes it if this fails.
        _ = fs::remove_dir(&self.folder);
    }
}

impl Drop for ParentCgroup {
    fn drop(&mut self) {
        self.remove_if_bare();
    }
}

/// Removes the parents below `folder` whose owners are gone, except cgroups with live processes.
pub fn sweep(folder: &Path) -> io::Result<()> {
    for parent in subfolders(folder)?.iter().filter(|folder| is_parent(folder)) {
        // If a folder cannot be removed, it is in use, or the next start retries.
        if let Ok(Some(_lock)) = lock(parent) {
            for cgroup in subfolders(parent).unwrap_or_default() {
                _ = remove(&cgroup);
            }
            _ = fs::remove_dir(parent);
        }
    }
    Ok(())
}

/// The parents of dead runs that were asked for. Each is locked as long as one of its cgroups is
/// held.
#[derive(Debug, Default)]
pub struct Claims {
    parents: HashMap<PathBuf, Option<Arc<OwnedFd>>>,
    /// Cgroups in which no process lives. They stay so: their parent has no owner. Thousands of
    /// processes may have used one after the other.
    empty: HashSet<PathBuf>,
}

impl Claims {
    /// The cgroup at this path, if a process lives in it and its parent has no owner. A live parent
    /// may have the name of a dead one, but has none of its cgroups.
    pub fn claim(&mut self, folder: &Path) -> Option<Cgroup> {
        if self.empty.contains(folder) {
            return None;
        }
        let parent = folder.parent().filter(|parent| is_parent(parent))?;
        let claim = self.parents.entry(parent.to_owned()).or_insert_with(|| {
            // A parent that cannot be locked cannot be claimed.
            lock(parent).ok().flatten().map(Arc::new)
        });
        let claim = Arc::clone(claim.as_ref()?);
        match state_at(folder) {
            Ok(state) if state.populated => Some(Cgroup::claimed(folder.to_owned(), claim)),
            Ok(_) => {
                self.empty.insert(folder.to_owned());
                None
            }
            Err(_) => None,
        }
    }
}

fn is_parent(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()))
}

/// Locks a folder; `None` if someone else holds the lock or the folder is gone.
fn lock(folder: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = match rustix::fs::open(folder, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    match flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(None),
        answer => answer?,
    }
    // Locked, but check that the name still refers to this folder.
    let inode = fs::metadata(folder).ok().map(|metadata| metadata.ino());
    Ok((inode == Some(fstat(&opened)?.st_ino)).then_some(opened))
}
