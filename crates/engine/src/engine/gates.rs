//! Tells which commands in the journal have never run, and never will.
//!
//! A start with a key has a file, its gate. It exists from before the journal record until the
//! child removes it, as the first thing the child does. If an engine finds the gate of a command
//! that its predecessor never saw started, it removes the gate: then no child has passed it, and
//! none will. If the gate is gone, or was never created, the command may have run.
//!
//! File names contain the boot id: after a power failure a file system may bring back removed
//! files.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::Id;

/// The gates of an engine with a journal.
#[derive(Debug)]
pub(super) struct Gates {
    folder: PathBuf,
    boot: String,
}

/// The gate of one start. Dropping this removes it if it still exists.
#[derive(Debug)]
pub(super) struct Gate {
    path: PathBuf,
}

impl Gates {
    pub(super) fn open(state: &Path) -> io::Result<Self> {
        let folder = state.join("starting");
        let boot = boot_id()?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        Ok(Self { folder, boot })
    }

    /// Removes the gate of a command that an earlier engine was about to start. Returns whether it
    /// existed, in which case the command has not run.
    pub(super) fn remove(&self, id: Id) -> bool {
        fs::remove_file(self.path(id)).is_ok()
    }

    /// Removes all others.
    pub(super) fn clear(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.folder)? {
            // A file that cannot be removed does no harm.
            _ = fs::remove_file(entry?.path());
        }
        Ok(())
    }

    /// Creates a gate. If that fails the start continues without, and its key is used up if it is
    /// killed.
    pub(super) fn make(&self, id: Id) -> Option<Gate> {
        let path = self.path(id);
        File::options().write(true).create_new(true).mode(0o600).open(&path).ok()?;
        Some(Gate { path })
    }

    fn path(&self, id: Id) -> PathBuf {
        self.folder.join(format!("{}-{id}", self.boot))
    }
}

/// Another one after each boot of the machine.
pub(super) fn boot_id() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

impl Gate {
    pub(super) fn for_child(&self) -> Option<CString> {
        CString::new(self.path.as_os_str().as_bytes()).ok()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // Usually the child has removed it.
        _ = fs::remove_file(&self.path);
    }
}
