//! Where a log lies: `<id>.log` and, where it needs an index, `<id>.index` beside it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The two paths of one log. Neither file exists before the first byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    log: PathBuf,
}

impl Place {
    pub fn new(folder: &Path, name: &str) -> Self {
        Self { log: folder.join(format!("{name}.log")) }
    }

    pub fn log(&self) -> &Path {
        &self.log
    }

    pub fn index(&self) -> PathBuf {
        self.log.with_extension("index")
    }

    /// Removes both files. A reader that has one open can read on.
    pub fn remove(&self) -> io::Result<()> {
        remove_if_there(&self.log)?;
        remove_if_there(&self.index())
    }
}

/// For this user alone. One that is there already is left over from an attempt that got no further.
pub(super) fn create_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        answer => answer,
    }
}
