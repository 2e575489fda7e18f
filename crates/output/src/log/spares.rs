//! Empty files, made ahead of need.
//!
//! A file system may take ten times as long to make a file as to rename one (ext4 searches its
//! bitmaps), and the first byte of a command would wait for that.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{LockResult, Mutex, MutexGuard, PoisonError};

use super::place::create_file;

/// Files that logs are made of. Dropped, it removes those that nobody took.
#[derive(Debug)]
pub struct Spares {
    folder: PathBuf,
    most: usize,
    /// Held for the time of a push or a pop.
    stock: Mutex<Stock>,
    /// Held while some are made.
    refilling: Mutex<()>,
}

const PREFIX: &str = "spare-";

#[derive(Debug, Default)]
struct Stock {
    files: Vec<(PathBuf, File)>,
    made: u64,
    is_refilled: bool,
    closed: bool,
}

impl Spares {
    /// None yet, in a folder on the file system of the logs.
    pub fn new(folder: PathBuf, most: usize) -> Self {
        Self { folder, most, stock: Mutex::default(), refilling: Mutex::default() }
    }

    /// Whether a file in their folder was one of them.
    pub fn is_one(path: &Path) -> bool {
        path.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with(PREFIX))
    }

    /// An empty file under this name, if there is one to be had at once.
    pub(super) fn take(&self, name: &Path) -> Option<File> {
        let (path, file) = self.stock().files.pop()?;
        match fs::rename(&path, name) {
            Ok(()) => Some(file),
            Err(_) => {
                // Nobody misses it; the next start removes what stays.
                _ = fs::remove_file(path);
                None
            }
        }
    }

    /// Whether the caller is to refill it: half of it is gone, and nobody else is at it.
    pub fn begins_to_run_low(&self) -> bool {
        let mut stock = self.stock();
        let low = stock.files.len() * 2 <= self.most && !stock.is_refilled;
        stock.is_refilled |= low;
        low
    }

    /// Makes those that are missing; blocks as long as the file system takes.
    pub fn refill(&self) {
        let _alone = whole(self.refilling.lock());
        // One that cannot be made is not missed: logs are then made when they are needed.
        while let Some(path) = self.missing() {
            match create_file(&path) {
                Ok(file) => self.stock().files.push((path, file)),
                Err(_) => break,
            }
        }
        self.stock().is_refilled = false;
    }

    fn missing(&self) -> Option<PathBuf> {
        let mut stock = self.stock();
        stock.made += 1;
        let path = self.folder.join(format!("{PREFIX}{}", stock.made));
        (!stock.closed && stock.files.len() < self.most).then_some(path)
    }

    /// Removes those that nobody took; there will be no more. Waits for one that is being made.
    pub fn close(&self) {
        self.stock().closed = true;
        let _nobody_makes_one = whole(self.refilling.lock());
        for (path, _) in self.stock().files.drain(..) {
            _ = fs::remove_file(path); // as above
        }
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        whole(self.stock.lock())
    }
}

/// Every change is complete in itself.
fn whole<'a, T>(lock: LockResult<MutexGuard<'a, T>>) -> MutexGuard<'a, T> {
    lock.unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Spares {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().flatten().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn a_spare_becomes_the_file_and_the_others_go_with_the_stock() {
        let folder = tempfile::tempdir().unwrap();
        let spares = Spares::new(folder.path().to_owned(), 3);
        let name = folder.path().join("a.log");
        assert!(spares.take(&name).is_none(), "none is made before it is asked for");
        spares.refill();
        assert_eq!(names(folder.path()), ["spare-1", "spare-2", "spare-3"]);
        let file = spares.take(&name).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"byte", 0).unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"byte");
        drop(spares);
        assert_eq!(names(folder.path()), ["a.log"]);
    }

    #[test]
    fn one_caller_refills_it_when_half_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let spares = Spares::new(folder.path().to_owned(), 4);
        assert!(spares.begins_to_run_low());
        assert!(!spares.begins_to_run_low(), "somebody is at it");
        spares.refill();
        spares.take(&folder.path().join("a")).unwrap();
        assert!(!spares.begins_to_run_low());
        spares.take(&folder.path().join("b")).unwrap();
        assert!(spares.begins_to_run_low());
    }

    #[test]
    fn none_is_made_once_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let spares = Spares::new(folder.path().to_owned(), 2);
        spares.refill();
        spares.close();
        spares.refill();
        assert_eq!(names(folder.path()), [] as [&str; 0]);
        assert!(spares.take(&folder.path().join("a")).is_none());
    }

    #[test]
    fn a_spare_that_somebody_took_away_is_not_missed() {
        let folder = tempfile::tempdir().unwrap();
        let spares = Spares::new(folder.path().to_owned(), 1);
        spares.refill();
        fs::remove_file(folder.path().join("spare-1")).unwrap();
        assert!(spares.take(&folder.path().join("a")).is_none());
        assert_eq!(names(folder.path()), [] as [&str; 0]);
    }
}
