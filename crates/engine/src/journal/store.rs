//! The bytes of a journal: those in its file, and those that wait for disk space.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lastbyte_sys::Errno;

use super::compaction::{Compacted, Compaction, Content, remove_on_error, write_new, write_synced};
use super::fingerprint::HashKey;
use super::frames::{HEADER, frame};
use super::live::LiveRecords;
use super::lock::{lock_path, take_lock};
use super::record::{Record, decoded};
use super::reserve::Reserve;
use super::state::JournalState;

/// The writing side of a journal.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    pub(super) reserve: Reserve,
    key: HashKey,
    /// `None` while the disk has no space for the first byte.
    file: Option<File>,
    /// Device and inode of the file.
    identity: (u64, u64),
    /// The length of the valid part of the file. Bytes after it are overwritten.
    len: u64,
    /// Frames that are not in the file yet, in order.
    pending: Vec<u8>,
    live: LiveRecords,
    /// The file still contains output of forgotten processes.
    pub(super) has_forgotten_output: bool,
    /// A compaction is using the reserved space, which appends to the old file would take from it.
    pub(super) compacts_in_reserve: bool,
    /// When a compaction was last tried.
    tried: Option<Instant>,
    /// How many records were appended.
    appended: u64,
    /// The number of the last record that is on disk. 0 while the file is gone.
    pub(super) written: Arc<AtomicU64>,
    /// Why the last write failed.
    trouble: Option<String>,
    /// How many times the file was gone and was written again.
    rewritten: u64,
    /// Keeps other servers out. The journal's own file is replaced now and then, so it cannot.
    pub(super) lock: Option<File>,
}

/// A file of this size is read in a moment, whatever is in it.
const SMALL: u64 = 1 << 20;
/// How many times larger than its live records the file may be.
const MOST_TIMES: u64 = 4;
/// Forgotten output stays in the file no longer than this and the time to the next sweep.
const REST: Duration = Duration::from_secs(60);

impl Store {
    pub(super) fn new(path: PathBuf, key: HashKey) -> Self {
        Self {
            reserve: Reserve::beside(&path),
            path,
            key,
            file: None,
            identity: (0, 0),
            len: 0,
            pending: Vec::new(),
            live: LiveRecords::default(),
            has_forgotten_output: false,
            compacts_in_reserve: false,
            tried: None,
            // What was read when the journal was opened counts as one.
            appended: 1,
            written: Arc::default(),
            trouble: None,
            rewritten: 0,
            lock: None,
        }
    }

    /// Returns the number of the record.
    pub(super) fn append(&mut self, record: &Record) -> u64 {
        let frame = frame(self.key, &record.encode());
        self.count(record, frame.len());
        self.pending.extend(frame);
        self.appended += 1;
        self.write();
        self.appended
    }

    /// What is on disk, and why not all of it.
    pub(super) fn state(&self) -> JournalState {
        JournalState {
            trouble: self.trouble.clone(),
            waiting_bytes: self.pending.len() as u64,
            rewritten: self.rewritten,
        }
    }

    /// Whether it is time for a smaller file.
    pub(super) fn is_due(&self) -> bool {
        let (live, len) = (self.live.bytes(), self.len + self.pending.len() as u64);
        let overgrown = len > SMALL && len > live * MOST_TIMES;
        let rested = self.tried.is_none_or(|tried| tried.elapsed() >= REST);
        let lacks_space = !self.pending.is_empty() && live <= Reserve::BYTES && len > live * 2;
        overgrown || lacks_space || rested && self.has_forgotten_output
    }

    /// As [`Store::is_due`], for the last time before the engine is closed.
    pub(super) fn is_due_on_close(&self) -> bool {
        self.has_forgotten_output || self.is_due()
    }

    /// Begins a compaction.
    pub(super) fn compaction(&mut self) -> io::Result<Compaction> {
        self.tried = Some(Instant::now());
        let file = self.file.as_ref().ok_or(io::ErrorKind::StorageFull)?;
        Ok(Compaction {
            key: self.key,
            old: file.try_clone()?,
            len: self.len,
            pending: self.pending.clone(),
            new: self.new_path(),
            generation: self.rewritten,
        })
    }

    /// Switches to the compacted file, after adding what was appended since the compaction began.
    pub(super) fn switch_to(&mut self, compacted: Compacted) -> io::Result<()> {
        if compacted.generation != self.rewritten {
            // It was made from a file that was replaced meanwhile.
            return remove_on_error(&compacted.new, Err(io::ErrorKind::Interrupted.into()));
        }
        let since = self.since(compacted.replaces)?;
        compacted.put_in_place(&self.path, &since)?;
        let Compacted { file, len, live, .. } = compacted;
        self.use_file(file, len + since.len() as u64)?;
        self.all_is_written();
        (self.live, self.has_forgotten_output) = (live, false);
        self.count_all(&decoded(self.key, &since));
        Ok(())
    }

    /// Truncates the file if no record is live: that needs no space. Returns whether it did.
    pub(super) fn empty_if_nothing_lives(&mut self) -> bool {
        let Some(file) = self.file.as_ref().filter(|_| self.live.bytes() == 0) else {
            return false;
        };
        let emptied = file.set_len(HEADER as u64).is_ok();
        if emptied {
            self.len = HEADER as u64;
            self.has_forgotten_output = false;
            self.pending.clear();
            self.write();
        }
        emptied
    }

    /// Frees the reserved space for a compaction, until the file is replaced. Returns whether there
    /// was any.
    pub(super) fn compact_in_reserve(&mut self) -> bool {
        self.compacts_in_reserve = self.reserve.give_back();
        self.compacts_in_reserve
    }

    /// Reserves space, unless records wait for it.
    pub(super) fn keep_reserve(&self) {
        if self.pending.is_empty() {
            self.reserve.set_aside();
        }
    }

    /// The bytes of file and pending frames after the first `count`.
    fn since(&self, count: u64) -> io::Result<Vec<u8>> {
        let written = usize::try_from(self.len.saturating_sub(count)).map_err(io::Error::other)?;
        let mut since = vec![0; written];
        if let Some(file) = &self.file {
            file.read_exact_at(&mut since, count)?;
        }
        let waiting = usize::try_from(count.saturating_sub(self.len)).map_err(io::Error::other)?;
        since.extend(self.pending.get(waiting..).unwrap_or_default());
        Ok(since)
    }

    /// Continues the existing file, of which this length is valid and has these live records.
    pub(super) fn resume(&mut self, len: u64, live: LiveRecords) -> io::Result<()> {
        let file = File::options().read(true).write(true).open(&self.path)?;
        file.set_len(len)?;
        self.use_file(file, len)?;
        self.live = live;
        self.all_is_written();
        Ok(())
    }

    fn use_file(&mut self, file: File, len: u64) -> io::Result<()> {
        self.identity = identity(&file.metadata()?);
        (self.file, self.len) = (Some(file), len);
        Ok(())
    }

    fn all_is_written(&mut self) {
        self.pending.clear();
        self.trouble = None;
        self.written.store(self.appended, Ordering::Release);
    }

    /// Replaces the old file by one with this content and the pending records.
    fn rewrite(&mut self, content: &Content) -> io::Result<()> {
        // The new file is on disk before it replaces one that has something to lose.
        let write = if content.live.bytes() == 0 { write_new } else { write_synced };
        let compacted = Compacted::write(content, self.new_path(), write)?;
        self.switch_to(Compacted { generation: self.rewritten, ..compacted })
    }

    /// Replaces the file of an earlier engine, with the reserved space if there is no other.
    pub(super) fn rewrite_using_reserve(&mut self, content: &Content) -> io::Result<()> {
        // Nobody knows what is in the old file, if it stays.
        self.has_forgotten_output = true;
        match self.rewrite(content) {
            Err(_) if self.reserve.give_back() => self.rewrite(content),
            written => written,
        }
    }

    /// Writes all pending frames with one call. If the disk does not take them, they stay pending.
    pub(super) fn write(&mut self) {
        let written = if self.is_in_place() { self.write_pending() } else { self.recreate() };
        match written {
            Ok(()) => self.all_is_written(),
            Err(error) => self.trouble = Some(error.to_string()),
        }
    }

    fn write_pending(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.compacts_in_reserve {
            return Err(Errno::NOSPC.into());
        }
        let Some(file) = &self.file else { return self.rewrite(&Content::new(self.key, [])) };
        if file.write_at(&self.pending, self.len)? < self.pending.len() {
            // What was written takes space that others need. The next write begins at the same
            // offset again.
            _ = file.set_len(self.len);
            return Err(Errno::NOSPC.into());
        }
        self.len += self.pending.len() as u64;
        Ok(())
    }

    /// Whether the file is where the next engine looks for it. If the path cannot be looked up, it
    /// may be: the file is open, and a write shows whether it takes more.
    fn is_in_place(&self) -> bool {
        if self.file.is_none() {
            return true;
        }
        match fs::metadata(&self.path) {
            Ok(found) => identity(&found) == self.identity,
            Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        }
    }

    /// Another program removed the file or its folder. The records can be read while the file is
    /// open, so they are written to a new one, with the pending ones.
    fn recreate(&mut self) -> io::Result<()> {
        self.written.store(0, Ordering::Release);
        let folder = self.path.parent().ok_or(io::ErrorKind::NotFound)?;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        if self.lock.as_ref().is_some_and(|lock| !is_at(lock, &lock_path(&self.path))) {
            let taken = take_lock(&self.path);
            self.lock = Some(taken.map_err(without_path)?);
        }
        if self.path.exists() {
            // It belongs to another server or a backup: it is not ours to remove.
            return Err(io::Error::other("another file has taken the place of the journal"));
        }
        let mut compaction = self.compaction()?;
        // A compaction may be running, and writes to the usual name.
        compaction.new = self.path.with_extension("again");
        // Nothing on disk can be lost, so the new file need not be synced.
        let compacted = compaction.run(write_new)?;
        self.switch_to(compacted)?;
        self.rewritten += 1;
        Ok(())
    }

    /// Drops pending records of processes that are already forgotten, so that a disk that stays full
    /// does not fill the memory too.
    pub(super) fn thin_out(&mut self) {
        if self.pending.len() as u64 <= SMALL {
            return;
        }
        self.pending = self.live.without_forgotten(self.key, &self.pending);
    }

    fn new_path(&self) -> PathBuf {
        self.path.with_extension("new")
    }

    fn count_all(&mut self, records: &[Record]) {
        for record in records {
            self.count(record, frame(self.key, &record.encode()).len());
        }
    }

    fn count(&mut self, record: &Record, bytes: usize) {
        let forgets_output = self.live.count(record, bytes as u64);
        self.has_forgotten_output |= forgets_output;
    }
}

/// Health shows the error to every client, so it must not contain the path.
fn without_path(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::ResourceBusy => io::Error::other("another server uses the state folder"),
        _ => error,
    }
}

fn identity(file: &fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Whether this file is the one at the path.
fn is_at(file: &File, path: &Path) -> bool {
    let at_path = fs::metadata(path).map(|found| identity(&found));
    let own = file.metadata().map(|found| identity(&found));
    matches!((at_path, own), (Ok(at_path), Ok(own)) if at_path == own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Id;
    use crate::journal::frames::split;
    use crate::journal::replay::Replayed;
    use crate::journal::sample::{ended_short, launched};

    #[test]
    fn what_comes_and_goes_while_the_disk_is_full_does_not_fill_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let (missing, key) = (folder.path().join("later"), HashKey::random());
        let mut store = Store::new(missing.join("journal"), key);
        let (stays, last) = (Id::fresh(), Id::fresh());
        store.append(&launched(stays, Some("/cgroup")));
        for number in 0..7000 {
            let id = if number == 6999 { last } else { Id::fresh() };
            store.append(&launched(id, Some("/cgroup")));
            store.append(&Record::Forgotten { id });
        }
        assert!(store.pending.len() > 1 << 20);
        assert!(store.is_due());
        store.thin_out();
        assert!(store.pending.len() < 1000, "{}", store.pending.len());
        // There is space: all live records are written, in order.
        fs::create_dir(&missing).unwrap();
        store.write();
        assert_eq!((store.pending.len(), store.len), (0, fs::metadata(&store.path).unwrap().len()));
        let bytes = fs::read(&store.path).unwrap();
        let (payloads, _) = split(key, &bytes[HEADER..]);
        let replayed = Replayed::of(payloads);
        assert_eq!(replayed.pasts.keys().copied().collect::<Vec<_>>(), [stays]);
        assert_eq!(replayed.pasts[&stays].launched.cgroup, None, "another one had it after that");
    }

    /// A store with much that is of no interest, and the ids of what is.
    fn overgrown(path: PathBuf) -> (Store, Vec<Id>) {
        let mut store = Store::new(path, HashKey::random());
        let stay: Vec<Id> = (0..3).map(|_| Id::fresh()).collect();
        for id in &stay {
            store.append(&launched(*id, Some("/cgroup")));
        }
        while !store.is_due() {
            let id = Id::fresh();
            store.append(&launched(id, None));
            store.append(&Record::Forgotten { id });
        }
        (store, stay)
    }

    /// The processes of the file, and the size of their records.
    fn read_back(store: &Store) -> (Vec<Id>, LiveRecords) {
        let bytes = fs::read(&store.path).unwrap();
        assert_eq!(bytes.len() as u64, store.len);
        let records = decoded(store.key, &bytes[HEADER..]);
        let mut counted = Store::new(store.path.clone(), store.key);
        counted.count_all(&records);
        let payloads: Vec<_> = records.iter().map(Record::encode).collect();
        let replayed = Replayed::of(payloads.iter().map(Vec::as_slice));
        (replayed.pasts.into_keys().collect(), counted.live)
    }

    #[test]
    fn what_is_appended_while_a_smaller_file_is_made_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, stay) = overgrown(folder.path().join("journal"));
        let compaction = store.compaction().unwrap();
        let (early, late) = (Id::fresh(), Id::fresh());
        store.append(&launched(early, Some("/cgroup")));
        store.append(&Record::Forgotten { id: stay[0] });
        let compacted = compaction.run(write_synced).unwrap();
        store.append(&launched(late, None));
        store.append(&Record::Started { id: stay[1], pid: 7 });
        store.switch_to(compacted).unwrap();
        assert!(!store.is_due());
        let (ids, live) = read_back(&store);
        assert_eq!(ids, [stay[1], stay[2], early, late]);
        assert_eq!(store.live, live);
        store.append(&Record::Forgotten { id: late });
        assert_eq!(read_back(&store).0, [stay[1], stay[2], early]);
    }

    #[test]
    fn what_waits_for_room_while_a_smaller_file_is_made_comes_behind_it_once() {
        let folder = tempfile::tempdir().unwrap();
        for written_meanwhile in [false, true] {
            let (mut store, stay) = overgrown(folder.path().join("journal"));
            let wait = |store: &mut Store| {
                let id = Id::fresh();
                store.pending.extend(frame(store.key, &launched(id, None).encode()));
                id
            };
            let before = wait(&mut store);
            let compaction = store.compaction().unwrap();
            if written_meanwhile {
                store.write();
            }
            let after = wait(&mut store);
            store.switch_to(compaction.run(write_synced).unwrap()).unwrap();
            let bytes = fs::read(&store.path).unwrap();
            let ids =
                decoded(store.key, &bytes[HEADER..]).iter().map(Record::id).collect::<Vec<_>>();
            assert_eq!(ids, [stay.as_slice(), &[before, after]].concat());
            assert_eq!((store.pending.len(), store.len), (0, bytes.len() as u64));
        }
    }

    #[test]
    fn a_smaller_file_that_cannot_be_put_in_place_costs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, stay) = overgrown(folder.path().join("journal"));
        let compacted = store.compaction().unwrap().run(write_synced).unwrap();
        fs::remove_file(&compacted.new).unwrap();
        store.append(&Record::Forgotten { id: stay[0] });
        store.switch_to(compacted).unwrap_err();
        store.append(&Record::Forgotten { id: stay[2] });
        assert_eq!(read_back(&store).0, [stay[1]]);
    }

    #[test]
    fn appends_do_not_take_the_reserved_space_from_a_compaction() {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, mut stay) = overgrown(folder.path().join("journal"));
        store.reserve.set_aside();
        assert!(store.compact_in_reserve() && !store.reserve.is_there());
        let (len, late) = (store.len, Id::fresh());
        store.append(&launched(late, None));
        assert_eq!(fs::metadata(&store.path).unwrap().len(), len);
        assert!(store.state().trouble.is_some(), "it is pending, and says so");
        let compacted = store.compaction().unwrap().run(write_synced).unwrap();
        store.switch_to(compacted).unwrap();
        stay.push(late);
        assert_eq!((read_back(&store).0, store.state().trouble), (stay, None));
    }

    #[test]
    fn forgotten_output_is_written_out_of_the_file_soon_and_not_at_once_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::new(folder.path().join("journal"), HashKey::random());
        let stays = Id::fresh();
        store.append(&launched(stays, None));
        let say_and_forget = |store: &mut Store| {
            let id = Id::fresh();
            store.append(&launched(id, None));
            store.append(&ended_short(id, b"secret"));
            assert!(!store.is_due_on_close());
            store.append(&Record::Forgotten { id });
        };
        say_and_forget(&mut store);
        assert!(store.is_due());
        let compacted = store.compaction().unwrap().run(write_synced).unwrap();
        store.switch_to(compacted).unwrap();
        assert!(!fs::read(&store.path).unwrap().windows(6).any(|part| part == b"secret"));
        say_and_forget(&mut store);
        assert!(!store.is_due() && store.is_due_on_close(), "a minute has not passed");
    }
}
