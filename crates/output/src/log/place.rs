//! Where a log lies: `<id>.log` and, for split streams, `<id>.runs` beside it.

use std::fs;
use std::io;
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

    pub fn runs(&self) -> PathBuf {
        self.log.with_extension("runs")
    }

    /// Removes both files. A reader that has one open can read on.
    pub fn remove(&self) -> io::Result<()> {
        remove_if_there(&self.log)?;
        remove_if_there(&self.runs())
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        answer => answer,
    }
}
