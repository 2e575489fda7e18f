//! Moves files away that the journal does not name, instead of removing them.
//!
//! They go into a folder `set-aside-N` beside the journal, where N is the unix time in seconds. The
//! newest few folders are kept.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::clock::unix_ms;

const PREFIX: &str = "set-aside-";
/// How many folders are kept.
const MOST: usize = 5;
/// How many bytes they may take together when a new one is made.
const MOST_BYTES: u64 = 2 << 30;

/// Takes the files that one start finds. Its folder is created with the first file.
#[derive(Debug)]
pub(crate) struct SetAside {
    state: PathBuf,
    folder: Option<PathBuf>,
    files: usize,
}

impl SetAside {
    pub(crate) fn new(state: &Path) -> Self {
        Self { state: state.to_owned(), folder: None, files: 0 }
    }

    /// Moves a file there.
    pub(crate) fn take(&mut self, path: &Path) -> io::Result<()> {
        let to = self.place_of(path)?;
        fs::rename(path, to)?;
        self.files += 1;
        Ok(())
    }

    /// Copies a file there.
    pub(crate) fn copy(&mut self, path: &Path) -> io::Result<()> {
        let to = self.place_of(path)?;
        fs::copy(path, to)?;
        self.files += 1;
        Ok(())
    }

    /// The folder, if anything is in it, and how many files are.
    pub(crate) fn found(&self) -> Option<(PathBuf, usize)> {
        self.folder.clone().filter(|_| self.files > 0).map(|folder| (folder, self.files))
    }

    fn place_of(&mut self, path: &Path) -> io::Result<PathBuf> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = match &self.folder {
            Some(folder) => folder,
            None => self.folder.insert(make_folder(&self.state)?),
        };
        Ok(folder.join(name))
    }
}

/// The folders there are, oldest first.
pub fn set_aside_folders(state: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found: Vec<(u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(state)? {
        let path = entry?.path();
        found.extend(number(&path).map(|number| (number, path)));
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

fn number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_prefix(PREFIX)?.parse().ok()
}

/// Creates a folder, after removing the oldest if there are too many.
fn make_folder(state: &Path) -> io::Result<PathBuf> {
    let mut old = set_aside_folders(state)?;
    let newest = old.last().and_then(|path| number(path)).unwrap_or(0);
    let mut bytes: u64 = old.iter().map(|folder| size(folder)).sum();
    while !old.is_empty() && (old.len() >= MOST || bytes > MOST_BYTES) {
        let oldest = old.remove(0);
        bytes = bytes.saturating_sub(size(&oldest));
        // A folder that cannot be removed stays until the next time.
        _ = fs::remove_dir_all(&oldest);
    }
    // A clock that was set back must not make the newest the oldest.
    let number = (unix_ms(SystemTime::now()) / 1000).max(newest + 1);
    let folder = state.join(format!("{PREFIX}{number}"));
    fs::DirBuilder::new().mode(0o700).create(&folder)?;
    Ok(folder)
}

/// The disk space of the files in a folder.
fn size(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|file| file.blocks() * 512).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_folders_are_kept_whatever_the_clock_says() {
        let state = tempfile::tempdir().unwrap();
        let future = state.path().join("set-aside-99999999999");
        fs::create_dir(&future).unwrap();
        fs::create_dir(state.path().join("set-aside-x")).unwrap();
        let mut made = Vec::new();
        for _ in 0..7 {
            let file = state.path().join("journal");
            fs::write(&file, "bytes").unwrap();
            let mut aside = SetAside::new(state.path());
            assert_eq!(aside.found(), None);
            aside.take(&file).unwrap();
            assert!(!file.exists());
            made.push(aside.found().unwrap().0);
        }
        assert_eq!(set_aside_folders(state.path()).unwrap(), made[2..]);
        assert_eq!(fs::read(made[6].join("journal")).unwrap(), b"bytes");
        assert!(state.path().join("set-aside-x").exists(), "none of ours");
    }
}
