//! Log files: numbered, opened ahead and used again.
//!
//! Creating a file takes 0.2 ms on ext4, and every start would wait for it. So some are created ahead,
//! and a short log gives its file back when it has ended. The journal records which process has which
//! number. A file that is used again gets another number: after a power loss the journal can be older
//! than the files, and a number in it must not lead to the output of another process.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lastbyte_sys::Errno;
use lastbyte_sys::file::rename_new;

use super::place::OpenLog;
use super::{Place, Writer};

/// The log files in a folder that no log uses.
#[derive(Debug)]
pub struct Pool {
    folder: PathBuf,
    /// How many files it keeps open.
    size: usize,
    /// The highest number used in the folder so far.
    last: AtomicU64,
    /// Held for the time of a push or a pop.
    spares: Mutex<Spares>,
}

/// An empty file for one log.
#[derive(Debug)]
pub struct LogFile {
    pub(super) place: Place,
    /// `None` if it is created at the first byte.
    pub(super) log: Option<OpenLog>,
    /// The index file of an earlier log, also empty.
    pub(super) index: Option<File>,
}

#[derive(Debug, Default)]
struct Spares {
    files: Vec<LogFile>,
    /// A thread is creating files.
    is_refilling: bool,
    closed: bool,
}

impl LogFile {
    /// A file that is created at the first byte.
    pub fn at(place: Place) -> Self {
        Self { place, log: None, index: None }
    }
}

impl Pool {
    /// An empty pool. If its size is 0, files are created at the first byte, and a log without output
    /// never has one. New numbers are higher than `last` and than all numbers in the folder.
    pub fn new(folder: PathBuf, size: usize, last: u64) -> Self {
        let last = AtomicU64::new(last.max(highest(&folder)));
        Self { folder, size, last, spares: Mutex::default() }
    }

    /// A file for a new log. Fails only for lack of descriptors: a full or failed disk costs output,
    /// not the command.
    pub fn take(&self) -> io::Result<LogFile> {
        let spare = self.spares().files.pop();
        match spare {
            Some(file) => Ok(file),
            None if self.size == 0 => Ok(LogFile::at(self.next_place())),
            None => self.create(),
        }
    }

    /// Takes back the file of a settled log. The caller makes sure that its bytes are on disk
    /// elsewhere.
    pub fn give_back(&self, log: Writer) {
        let Some(mut file) = log.into_emptied_file() else { return };
        let is_wanted = self.spares().want_more(self.size);
        if is_wanted && file.move_to(self.next_place()).is_ok() {
            self.put(file);
        } else {
            file.remove();
        }
    }

    /// Whether the caller should refill it: half of it is gone and no other thread is refilling it.
    pub fn begins_to_run_low(&self) -> bool {
        let mut spares = self.spares();
        let count = spares.files.len();
        let low = count < self.size && count * 2 <= self.size && !spares.is_refilling;
        spares.is_refilling |= low;
        low
    }

    /// Creates the missing files. Blocks on the file system.
    pub fn refill(&self) {
        while self.spares().want_more(self.size) {
            match self.create() {
                Ok(file) if file.log.is_some() => self.put(file),
                // The start that needs it tries again.
                Ok(_) | Err(_) => break,
            }
        }
        self.spares().is_refilling = false;
    }

    /// Removes all files, which frees their descriptors. Returns how many there were.
    pub fn empty(&self) -> usize {
        let files = std::mem::take(&mut self.spares().files);
        files.iter().for_each(LogFile::remove);
        files.len()
    }

    /// Removes all files, now and when they come back.
    pub fn close(&self) {
        self.spares().closed = true;
        self.empty();
    }

    fn create(&self) -> io::Result<LogFile> {
        loop {
            let place = self.next_place();
            match OpenLog::create(place.log()) {
                // Another engine uses the folder, too.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) if is_short_of_descriptors(&error) => return Err(error),
                made => return Ok(LogFile { log: made.ok(), ..LogFile::at(place) }),
            }
        }
    }

    fn next_place(&self) -> Place {
        Place::new(&self.folder, self.last.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn put(&self, file: LogFile) {
        let mut spares = self.spares();
        if spares.want_more(self.size) {
            spares.files.push(file);
        } else {
            drop(spares);
            file.remove();
        }
    }

    fn spares(&self) -> MutexGuard<'_, Spares> {
        // Every change is complete in itself.
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spares {
    fn want_more(&self, size: usize) -> bool {
        !self.closed && self.files.len() < size
    }
}

impl LogFile {
    /// Gives it another number, unless another engine's file is at its path or at the new one.
    fn move_to(&mut self, place: Place) -> Result<(), Errno> {
        if !self.is_in_place() {
            return Err(Errno::NOENT);
        }
        rename_new(self.place.log(), place.log())?;
        let from = std::mem::replace(&mut self.place, place);
        // A log without an index file creates one when it needs it.
        self.index.take_if(|_| rename_new(&from.index(), &self.place.index()).is_err());
        Ok(())
    }

    /// Removes it, unless another engine's file is at its path.
    fn remove(&self) {
        if self.is_in_place() {
            // The next engine removes an empty file that is left.
            _ = self.place.remove();
        }
    }

    fn is_in_place(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.is_at(self.place.log()))
    }
}

fn highest(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| Place::number_of(&file.path())).max().unwrap_or(0)
}

fn is_short_of_descriptors(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Quota, Streams};

    fn names(folder: &Path) -> Vec<String> {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_pool_is_filled_as_far_as_it_goes_and_again_when_half_of_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let pool = Pool::new(folder.path().to_owned(), 4, 0);
        assert!(pool.begins_to_run_low() && !pool.begins_to_run_low(), "one caller at a time");
        pool.refill();
        assert_eq!(names(folder.path()), ["1.log", "2.log", "3.log", "4.log"]);
        drop(pool.take().unwrap());
        assert!(!pool.begins_to_run_low());
        drop(pool.take().unwrap());
        assert!(pool.begins_to_run_low());
        pool.refill();
        assert_eq!((names(folder.path()).len(), pool.empty()), (6, 4), "what was taken stays");
        assert!(!Pool::new(folder.path().to_owned(), 0, 0).begins_to_run_low());
    }

    #[test]
    fn a_new_file_has_a_number_above_all_that_were_seen() {
        let folder = tempfile::tempdir().unwrap();
        let take = |last| Pool::new(folder.path().to_owned(), 4, last).take().unwrap();
        fs::write(folder.path().join("7.index"), "").unwrap();
        assert_eq!(take(3).place.number(), 8);
        assert_eq!(take(30).place.number(), 31);
        // Somebody else makes some meanwhile.
        let pool = Pool::new(folder.path().to_owned(), 4, 0);
        fs::write(folder.path().join("32.log"), "not ours").unwrap();
        assert_eq!(pool.take().unwrap().place.number(), 33);
        assert_eq!(fs::read(folder.path().join("32.log")).unwrap(), b"not ours");
    }

    fn unused(pool: &Pool) -> Writer {
        let writer = Writer::new(pool.take().unwrap(), Streams::One, Quota::DEFAULT, 5);
        writer.settle().unwrap();
        writer
    }

    #[test]
    fn what_is_given_back_is_taken_again_unless_there_are_enough() {
        let folder = tempfile::tempdir().unwrap();
        let pool = Pool::new(folder.path().to_owned(), 1, 0);
        let (first, second) = (unused(&pool), unused(&pool));
        pool.give_back(first);
        pool.give_back(second);
        assert_eq!(names(folder.path()), ["3.log"]);
        assert_eq!(pool.take().unwrap().place.number(), 3);
    }

    #[test]
    fn a_number_is_used_once() {
        let folder = tempfile::tempdir().unwrap();
        let pool = Pool::new(folder.path().to_owned(), 1, 0);
        for number in 1..5 {
            let log = unused(&pool);
            assert_eq!(
                (log.number(), names(folder.path())),
                (number, vec![format!("{number}.log")])
            );
            pool.give_back(log);
        }
    }

    /// Another engine may use the folder after it was deleted and created again.
    #[test]
    fn a_file_that_cannot_get_another_number_is_removed_and_nobody_elses_is_touched() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("1.log"), folder.path().join("2.log"));
        let pool = Pool::new(folder.path().to_owned(), 1, 0);
        let log = unused(&pool);
        fs::write(&second, "not ours").unwrap();
        pool.give_back(log);
        assert_eq!(names(folder.path()), ["2.log"]);
        let log = unused(&pool);
        assert_eq!(log.number(), 3);
        fs::rename(&second, folder.path().join("3.log")).unwrap();
        pool.give_back(log);
        assert_eq!(names(folder.path()), ["3.log"]);
        assert_eq!((first.exists(), pool.empty()), (false, 0));
        assert_eq!(fs::read(folder.path().join("3.log")).unwrap(), b"not ours");
    }

    #[test]
    fn without_files_ahead_a_silent_log_never_has_one() {
        let folder = tempfile::tempdir().unwrap();
        let pool = Pool::new(folder.path().to_owned(), 0, 0);
        assert!(!pool.begins_to_run_low());
        let (first, second) = (pool.take().unwrap(), pool.take().unwrap());
        assert_eq!((first.place.number(), second.place.number()), (1, 2));
        assert_eq!(names(folder.path()), [] as [&str; 0]);
    }

    #[test]
    fn nothing_stays_once_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let pool = Pool::new(folder.path().to_owned(), 2, 0);
        let taken = unused(&pool);
        pool.refill();
        pool.close();
        pool.refill();
        pool.give_back(taken);
        assert_eq!(names(folder.path()), [] as [&str; 0]);
    }
}
