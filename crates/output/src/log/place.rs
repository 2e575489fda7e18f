//! The files of a log: `N.log` and, if it needs an index, `N.index`.

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The two paths of one log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    number: u64,
    log: PathBuf,
}

impl Place {
    pub fn new(folder: &Path, number: u64) -> Self {
        Self { number, log: folder.join(format!("{number}.log")) }
    }

    /// The number in the name of a log or index file.
    pub fn number_of(path: &Path) -> Option<u64> {
        path.file_stem()?.to_str()?.parse().ok()
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn log(&self) -> &Path {
        &self.log
    }

    pub fn index(&self) -> PathBuf {
        self.log.with_extension("index")
    }

    /// Removes both files. A reader that has them open can still read.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove_if_there(&self.log)?;
        remove_if_there(&self.index())
    }
}

/// A log file that is open.
#[derive(Debug)]
pub(super) struct OpenLog {
    pub(super) file: File,
    id: FileId,
}

impl OpenLog {
    pub(super) fn new(file: File) -> io::Result<Self> {
        file.metadata().map(|found| Self { file, id: (found.dev(), found.ino()) })
    }

    pub(super) fn create(path: &Path) -> io::Result<Self> {
        create_file(path).and_then(Self::new)
    }

    pub(super) fn id(&self) -> FileId {
        self.id
    }

    /// Whether it is at the path. If that cannot be looked up (no permission), it may be.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        match id_at(path) {
            Ok(found) => found == self.id,
            Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        }
    }
}

/// Creates a file for this user alone; fails if it exists. A folder that was removed is created again,
/// but not its parent.
pub(super) fn create_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let options = options.read(true).write(true).create_new(true).mode(0o600);
    match (options.open(path), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == ErrorKind::NotFound => {
            DirBuilder::new().mode(0o700).create(folder)?;
            options.open(path)
        }
        (file, _) => file,
    }
}

/// Device and inode.
pub(super) type FileId = (u64, u64);

pub(super) fn id_at(path: &Path) -> io::Result<FileId> {
    fs::metadata(path).map(|file| (file.dev(), file.ino()))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        answer => answer,
    }
}
