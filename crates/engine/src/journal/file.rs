//! The journal's file: read once when it is opened, then appended to, and compacted now and then.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastbyte_output::log::Extent;
use tokio::sync::watch;

use super::compaction::Content;
use super::fingerprint::HashKey;
use super::frames::{HEADER, HeaderError, goes_on, read_header, split};
use super::lock::take_lock;
use super::record::Record;
use super::replay::Replayed;
use super::set_aside::SetAside;
use super::state::{JournalState, Recorded};
use super::store::Store;
use crate::Id;
use crate::process::ending::Ending;

/// Where an engine writes what the next one needs. While the disk is full, records wait in memory, in
/// order.
#[derive(Debug)]
pub(crate) struct Journal {
    key: HashKey,
    /// Held for the time of a write.
    store: Mutex<Store>,
    /// Held during a compaction, by a thread that may wait for the disk.
    pub(super) compacting: Mutex<()>,
    state: watch::Sender<JournalState>,
}

/// When a journal is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opening {
    AtStart,
    /// Commands and clients wait for a new worker: nothing is rewritten or synced.
    AtTakeOver,
}

/// The journal cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the journal {path}", path = path.display())]
struct Unreadable {
    path: PathBuf,
    #[source]
    source: HeaderError,
}

/// The journal in this state folder.
pub fn journal_file(state: &Path) -> PathBuf {
    state.join("journal")
}

/// How many processes the journal in this state folder has, without those that were forgotten. A server may
/// be writing it.
pub fn recorded_processes(state: &Path) -> io::Result<u64> {
    let bytes = match fs::read(journal_file(state)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        bytes => bytes?,
    };
    let key = read_header(&bytes).map_err(io::Error::other)?;
    Ok(replay(key, &bytes).pasts.len() as u64)
}

impl Journal {
    /// Opens or creates the journal in this folder, and returns what it had. A file that cannot be
    /// read, or not to its end, is set aside. It is made as small as can be, unless somebody waits.
    pub(crate) fn open(
        folder: &Path,
        aside: &mut SetAside,
        opening: Opening,
    ) -> io::Result<(Self, Replayed)> {
        let path = journal_file(folder);
        let lock = take_lock(&path)?;
        let mut bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            bytes => bytes?,
        };
        let (key, replayed) = match read_header(&bytes) {
            Ok(key) => (key, replay(key, &bytes)),
            Err(HeaderError::Invalid) => {
                let torn_bytes = bytes.len() as u64;
                if torn_bytes > 0 {
                    aside.take(&path)?;
                }
                bytes.clear();
                (HashKey::random(), Replayed { torn_bytes, ..Replayed::default() })
            }
            // A later version can read it, so this one must not replace it.
            Err(source @ HeaderError::Version(_)) => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    Unreadable { path, source },
                ));
            }
        };
        let good = (bytes.len() as u64).saturating_sub(replayed.torn_bytes);
        let torn = bytes.get(good as usize..).unwrap_or_default();
        if replayed.unknown > 0 || goes_on(key, torn) {
            // If there is no space for it, everything that could be read is still there.
            _ = aside.copy(&path);
        }
        let mut store = Store::new(path, key);
        store.lock = Some(lock);
        let content = Content::new(key, replayed.records());
        let is_minimal = content.bytes == bytes;
        let goes_on = opening == Opening::AtTakeOver && good > 0;
        // If there is no space for a new file, the old one stays in use, without the torn end.
        if goes_on || is_minimal || store.rewrite_using_reserve(&content).is_err() && good > 0 {
            store.resume(good, content.live)?;
            store.has_forgotten_output |= replayed.forgotten_output;
        }
        let state = watch::Sender::new(store.state());
        let (store, compacting) = (Mutex::new(store), Mutex::default());
        Ok((Self { key, store, compacting, state }, replayed))
    }

    /// The key of the fingerprints in this journal.
    pub(crate) fn key(&self) -> HashKey {
        self.key
    }

    /// Whether all records are on disk, as it changes.
    pub(crate) fn state(&self) -> watch::Receiver<JournalState> {
        self.state.subscribe()
    }

    /// For a process that will write here, or whose records were read.
    pub(crate) fn recorded(&self) -> Recorded {
        Recorded::new(Arc::clone(&self.store().written), 1)
    }

    /// Returns the number of the record.
    pub(super) fn append(&self, record: &Record) -> u64 {
        self.change(|store| store.append(record))
    }

    /// Records the ending of a process of an earlier engine.
    pub(crate) fn ended(&self, id: Id, ending: &Ending, extent: &Extent, recorded: &Recorded) {
        recorded.append(self.append(&Record::ended(id, ending, extent, None)));
    }

    /// Records that a launched command never ran.
    pub(crate) fn failed(&self, id: Id) {
        self.append(&Record::Failed { id });
    }

    pub(crate) fn forgotten(&self, id: Id) {
        self.append(&Record::Forgotten { id });
    }

    /// Writes pending records, and the whole file again if it is gone.
    pub(crate) fn write(&self) {
        self.change(Store::write);
    }

    /// Changes the store and publishes its new state.
    pub(super) fn change<T>(&self, act: impl FnOnce(&mut Store) -> T) -> T {
        let mut store = self.store();
        let outcome = act(&mut store);
        // Under the lock, so that states are published in order.
        self.state.send_if_modified(|known| {
            let state = store.state();
            let changed = *known != state;
            *known = state;
            changed
        });
        outcome
    }

    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        // A record is counted, queued and then written: after a panic it is at worst written later.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn replay(key: HashKey, bytes: &[u8]) -> Replayed {
    let (payloads, good) = split(key, &bytes[HEADER..]);
    Replayed { torn_bytes: (bytes.len() - HEADER - good) as u64, ..Replayed::of(payloads) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::frames::header;
    use crate::journal::sample::{ended_short, launched, launched_with};

    fn ids(replayed: &Replayed) -> Vec<Id> {
        replayed.pasts.keys().copied().collect()
    }

    fn open(folder: &Path) -> io::Result<(Journal, Replayed)> {
        Journal::open(folder, &mut SetAside::new(folder), Opening::AtStart)
    }

    fn size(folder: &Path) -> u64 {
        fs::metadata(folder.join("journal")).unwrap().len()
    }

    #[test]
    fn cut_at_any_byte_it_has_what_was_whole_and_goes_on_from_there() {
        let folder = tempfile::tempdir().unwrap();
        let all: Vec<Id> = (0..3).map(|_| Id::fresh()).collect();
        let (mut ends, path) = (vec![], folder.path().join("journal"));
        let (journal, _) = open(folder.path()).unwrap();
        for id in &all {
            journal.append(&launched(*id, None));
            ends.push(size(folder.path()));
        }
        drop(journal);
        let whole = fs::read(&path).unwrap();
        for cut in HEADER..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let (journal, replayed) = open(folder.path()).unwrap();
            let count = ends.iter().filter(|end| **end <= cut as u64).count();
            assert_eq!(ids(&replayed), all[..count]);
            let good = count.checked_sub(1).map_or(HEADER as u64, |last| ends[last]);
            assert_eq!(replayed.torn_bytes, cut as u64 - good);
            let later = Id::fresh();
            journal.append(&launched(later, None));
            drop(journal);
            let again = open(folder.path()).unwrap().1;
            assert_eq!(ids(&again), [&all[..count], &[later]].concat());
            assert_eq!(again.torn_bytes, 0);
        }
        for cut in 0..HEADER {
            fs::write(&path, &whole[..cut]).unwrap();
            let replayed = open(folder.path()).unwrap().1;
            assert_eq!((ids(&replayed), replayed.torn_bytes), (vec![], cut as u64));
        }
    }

    #[test]
    fn output_forgotten_before_a_take_over_is_soon_written_out_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = open(folder.path()).unwrap();
        let (id, stays) = (Id::fresh(), Id::fresh());
        journal.append(&launched(stays, None));
        journal.append(&launched(id, None));
        journal.append(&ended_short(id, b"secret"));
        journal.append(&Record::Forgotten { id });
        drop(journal);
        let path = folder.path().join("journal");
        let has_secret = || fs::read(&path).unwrap().windows(6).any(|part| part == b"secret");
        let mut aside = SetAside::new(folder.path());
        let (journal, _) = Journal::open(folder.path(), &mut aside, Opening::AtTakeOver).unwrap();
        assert!(has_secret(), "a take-over rewrites nothing");
        assert!(journal.store().is_due());
        journal.compact();
        assert!(!has_secret());
        let silent = Id::fresh();
        journal.append(&launched(silent, None));
        journal.forgotten(silent);
        drop(journal);
        // Without output of a forgotten process, nothing is due.
        let (journal, _) = Journal::open(folder.path(), &mut aside, Opening::AtTakeOver).unwrap();
        assert!(!journal.store().is_due());
    }

    #[test]
    fn one_of_a_later_version_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let mut later = header(HashKey::random());
        later[8] = 3;
        fs::write(&path, &later).unwrap();
        let error = open(folder.path()).expect_err("it may have more to say");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(fs::read(&path).unwrap(), later);
    }

    #[test]
    fn what_is_no_journal_or_is_damaged_at_its_beginning_is_set_aside() {
        let mut damaged = header(HashKey::random());
        damaged[20] ^= 1;
        for bytes in [vec![b'?'; HEADER + 5], vec![0; 10_000], damaged, b"lastb".to_vec()] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("journal");
            fs::write(&path, &bytes).unwrap();
            let mut aside = SetAside::new(folder.path());
            let (journal, replayed) =
                Journal::open(folder.path(), &mut aside, Opening::AtStart).unwrap();
            assert_eq!((ids(&replayed), replayed.torn_bytes), (vec![], bytes.len() as u64));
            let (kept, files) = aside.found().unwrap();
            assert_eq!((fs::read(kept.join("journal")).unwrap(), files), (bytes, 1));
            let id = Id::fresh();
            journal.append(&launched(id, None));
            drop(journal);
            assert_eq!(ids(&open(folder.path()).unwrap().1), [id]);
        }
    }

    #[test]
    fn it_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = open(folder.path()).unwrap();
        let error = open(folder.path()).expect_err("in use");
        assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
        drop(journal);
        open(folder.path()).unwrap();
    }

    #[test]
    fn what_is_of_no_interest_goes_while_it_is_written_and_when_it_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = open(folder.path()).unwrap();
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
        let (_journal, replayed) = open(folder.path()).unwrap();
        assert_eq!((ids(&replayed), size(folder.path())), (vec![kept], one));
        assert_eq!(replayed.pasts[&kept].pid, Some(7));
    }

    /// Cgroups are reused: an earlier user must not be taken for the one that is in it.
    #[test]
    fn a_cgroup_belongs_to_its_last_process_even_if_that_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let (early, late, other) = (Id::fresh(), Id::fresh(), Id::fresh());
        let (journal, _) = open(folder.path()).unwrap();
        journal.append(&launched(early, Some("/cgroup")));
        journal.append(&launched(late, Some("/cgroup")));
        journal.append(&launched(other, Some("/other")));
        journal.forgotten(late);
        drop(journal);
        for _ in 0..2 {
            let replayed = open(folder.path()).unwrap().1;
            assert_eq!(ids(&replayed), [early, other]);
            assert_eq!(replayed.pasts[&early].launched.cgroup, None);
            assert_eq!(replayed.pasts[&other].launched.cgroup, Some("/other".into()));
        }
    }

    #[test]
    fn a_log_is_in_its_file_or_in_its_record() {
        let folder = tempfile::tempdir().unwrap();
        let [short, long, gone] = [(); 3].map(|()| Id::fresh());
        let (journal, _) = open(folder.path()).unwrap();
        for (id, log) in [(short, 6), (long, 7), (gone, 9)] {
            journal.append(&launched_with(id, None, Some(log)));
        }
        journal.append(&ended_short(short, b"own"));
        journal.forgotten(gone);
        drop(journal);
        for highest in [9, 7] {
            let replayed = open(folder.path()).unwrap().1;
            let log = |id| replayed.pasts[&id].log();
            assert_eq!((log(short), log(long)), (None, Some(7)));
            assert_eq!(replayed.pasts[&short].short.as_ref().unwrap().bytes, b"own");
            assert_eq!(replayed.logs.keys().max(), Some(&highest));
            assert_eq!(replayed.logs.get(&6), Some(&short), "what is left of it can be removed");
        }
    }
}
