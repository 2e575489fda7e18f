//! The journal's file: appended to, read once, written anew when most of it is of no interest.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lastbyte_output::log::Extent;

use super::fingerprint::HashKey;
use super::frames::{HEADER, HeaderError, goes_on, read_header, split};
use super::record::Record;
use super::replay::Replayed;
use super::store::Store;
use crate::Id;
use crate::ending::Ending;

/// Where an engine writes what the next one needs. A disk that is full costs nothing but memory:
/// records wait, in order, until there is room.
#[derive(Debug)]
pub(crate) struct Journal {
    key: HashKey,
    /// Held for the time of a write.
    store: Mutex<Store>,
    /// Held while a smaller file is made, by a thread that may wait for the disk.
    pub(super) compacting: Mutex<()>,
    /// Says that somebody writes here; the file itself is replaced now and then.
    _lock: File,
}

/// Why there is no journal.
#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error("another engine writes the journal {path}", path = path.display())]
    InUse { path: PathBuf },
    #[error("cannot read the journal {path}", path = path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: HeaderError,
    },
}

impl Journal {
    /// Opens the journal in this folder, or begins one, and says what it had.
    pub(crate) fn open(folder: &Path) -> io::Result<(Self, Replayed)> {
        let path = folder.join("journal");
        let lock = lock(&path)?;
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            bytes => bytes?,
        };
        let (key, replayed) = match read_header(&bytes) {
            Ok(key) => (key, replay(key, &bytes)),
            // A header is written with the file, and the file is there when it is whole: a shorter
            // one is of a machine that went down, and has nothing behind it.
            Err(HeaderError::Torn) => {
                let torn_bytes = bytes.len() as u64;
                (HashKey::random(), Replayed { torn_bytes, ..Replayed::default() })
            }
            Err(source) => {
                let error = OpenError::Unreadable { path, source };
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        };
        let good = bytes.len() as u64 - replayed.torn_bytes;
        let torn = bytes.get(good as usize..).unwrap_or_default();
        let damaged = damaged_path(folder);
        if (replayed.unknown > 0 || goes_on(key, torn)) && !damaged.exists() {
            // Without room for it there is still everything that could be read.
            _ = fs::copy(&path, damaged);
        }
        let mut store = Store::new(path, key);
        let records = replayed.records();
        // Without room for another file the old one goes on, without what is torn.
        let as_it_is = store.content(&records) == bytes;
        if as_it_is || store.rewrite_somehow(&records).is_err() && good > 0 {
            store.go_on(good, &records)?;
        }
        Ok((
            Self { key, store: Mutex::new(store), compacting: Mutex::default(), _lock: lock },
            replayed,
        ))
    }

    /// What fingerprints in this journal are made with.
    pub(crate) fn key(&self) -> HashKey {
        self.key
    }

    pub(super) fn append(&self, record: &Record) {
        self.store().append(record);
    }

    /// Appends it unless the disk has no room for it; says whether it has.
    pub(super) fn append_now(&self, record: &Record) -> bool {
        self.store().append_now(record)
    }

    /// A process that nobody will see end has ended in this way.
    pub(crate) fn ended(&self, id: Id, ending: &Ending, extent: &Extent) {
        self.append(&Record::ended(id, ending, extent));
    }

    pub(crate) fn forgotten(&self, id: Id) {
        self.append(&Record::Forgotten { id });
    }

    /// Writes what still waits for room.
    pub(crate) fn write(&self) {
        self.store().write();
    }

    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        // A record is counted, queued and written in this order, so that a panic leaves at worst
        // one that is written later.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a journal is kept that had more in it than could be read. While it is there nothing is
/// removed that it may name.
pub(crate) fn damaged_path(folder: &Path) -> PathBuf {
    folder.join("journal.damaged")
}

fn replay(key: HashKey, bytes: &[u8]) -> Replayed {
    let frames = &bytes[HEADER..];
    let (payloads, good) = split(key, frames);
    let replayed = Replayed::of(payloads.into_iter().map(|payload| &frames[payload]));
    Replayed { torn_bytes: (frames.len() - good) as u64, ..replayed }
}

fn lock(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(path.with_extension("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let error = OpenError::InUse { path: path.to_owned() };
            Err(io::Error::new(io::ErrorKind::ResourceBusy, error))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::sample::launched;

    fn ids(replayed: &Replayed) -> Vec<Id> {
        replayed.pasts.keys().copied().collect()
    }

    fn size(folder: &Path) -> u64 {
        fs::metadata(folder.join("journal")).unwrap().len()
    }

    #[test]
    fn cut_at_any_byte_it_has_what_was_whole_and_goes_on_from_there() {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<Id> = (0..3).map(|_| Id::fresh()).collect();
        let (mut ends, path) = (vec![], folder.path().join("journal"));
        let (journal, _) = Journal::open(folder.path()).unwrap();
        for id in &all {
            journal.append(&launched(*id, None));
            ends.push(size(folder.path()));
        }
        drop(journal);
        let whole = fs::read(&path).unwrap();
        for cut in HEADER..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let (journal, replayed) = Journal::open(folder.path()).unwrap();
            let count = ends.iter().filter(|end| **end <= cut as u64).count();
            assert_eq!(ids(&replayed), all[..count]);
            let good = count.checked_sub(1).map_or(HEADER as u64, |last| ends[last]);
            assert_eq!(replayed.torn_bytes, cut as u64 - good);
            let later = Id::fresh();
            journal.append(&launched(later, None));
            drop(journal);
            let again = Journal::open(folder.path()).unwrap().1;
            assert_eq!(ids(&again), [&all[..count], &[later]].concat());
            assert_eq!(again.torn_bytes, 0);
        }
        for cut in 0..HEADER {
            fs::write(&path, &whole[..cut]).unwrap();
            let replayed = Journal::open(folder.path()).unwrap().1;
            assert_eq!((ids(&replayed), replayed.torn_bytes), (vec![], cut as u64));
        }
    }

    #[test]
    fn what_it_cannot_read_it_leaves_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let strange = [b'?'; HEADER + 5];
        fs::write(&path, strange).unwrap();
        let error = Journal::open(folder.path()).expect_err("none of ours");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(fs::read(&path).unwrap(), strange);
    }

    #[test]
    fn it_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::open(folder.path()).unwrap();
        let error = Journal::open(folder.path()).expect_err("in use");
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        drop(journal);
        Journal::open(folder.path()).unwrap();
    }

    #[test]
    fn what_is_of_no_interest_goes_while_it_is_written_and_when_it_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::open(folder.path()).unwrap();
        let kept = Id::fresh();
        journal.append(&launched(kept, None));
        journal.append(&Record::Started { id: kept, pid: 7 });
        let one = size(folder.path());
        for _ in 0..7000 {
            let gone = Id::fresh();
            journal.append(&launched(gone, None));
            journal.forgotten(gone);
        }
        assert!(size(folder.path()) > 1 << 20);
        journal.compact();
        assert_eq!(size(folder.path()), one);
        let failed = Id::fresh();
        journal.append(&launched(failed, None));
        journal.append(&Record::Failed { id: failed });
        drop(journal);
        let (_journal, replayed) = Journal::open(folder.path()).unwrap();
        assert_eq!((ids(&replayed), size(folder.path())), (vec![kept], one));
        assert_eq!(replayed.pasts[&kept].pid, Some(7));
    }

    /// Leaves are pooled: who had one before must not be taken for who lives in it.
    #[test]
    fn a_leaf_is_of_whoever_had_it_last_even_if_that_one_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let (early, late, other) = (Id::fresh(), Id::fresh(), Id::fresh());
        let (journal, _) = Journal::open(folder.path()).unwrap();
        journal.append(&launched(early, Some("/leaf")));
        journal.append(&launched(late, Some("/leaf")));
        journal.append(&launched(other, Some("/other")));
        journal.forgotten(late);
        drop(journal);
        for _ in 0..2 {
            let replayed = Journal::open(folder.path()).unwrap().1;
            assert_eq!(ids(&replayed), [early, other]);
            assert_eq!(replayed.pasts[&early].launched.leaf, None);
            assert_eq!(replayed.pasts[&other].launched.leaf, Some("/other".into()));
        }
    }
}
