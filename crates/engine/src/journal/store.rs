//! The bytes of a journal: those on disk, and those that wait for room there.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::fingerprint::HashKey;
use super::frames::{HEADER, frame, header, split};
use super::record::Record;
use super::replay::Replayed;
use crate::Id;

/// The one side that writes.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    key: HashKey,
    /// `None` while the disk has no room for the first byte.
    file: Option<File>,
    /// How far the file is whole. What lies behind it is overwritten.
    len: u64,
    /// Frames that are not in the file yet, in order.
    pending: Vec<u8>,
    /// What the records of each process take, as long as they are of interest.
    live: HashMap<Id, u64>,
}

/// A file of this size is read in a moment, whatever is in it.
const SMALL: u64 = 1 << 20;
/// How many times larger than what is of interest a file may be.
const MOST_TIMES: u64 = 4;

impl Store {
    pub(super) fn new(path: PathBuf, key: HashKey) -> Self {
        Self { path, key, file: None, len: 0, pending: Vec::new(), live: HashMap::new() }
    }

    pub(super) fn append(&mut self, record: &Record) {
        let frame = frame(self.key, &record.encode());
        self.count(record, frame.len());
        self.pending.extend(frame);
        self.write();
    }

    /// Appends it if the disk takes it now, and says whether.
    pub(super) fn append_now(&mut self, record: &Record) -> bool {
        let before = self.pending.len();
        let frame = frame(self.key, &record.encode());
        self.pending.extend(&frame);
        self.write();
        let written = self.pending.is_empty();
        match written {
            true => self.count(record, frame.len()),
            false => self.pending.truncate(before),
        }
        written
    }

    pub(super) fn tend(&mut self) {
        self.write();
        let live: u64 = self.live.values().sum();
        let len = self.len + self.pending.len() as u64;
        if len > SMALL && len > live * MOST_TIMES {
            // A file that cannot be written anew now goes on, and is tried again.
            if self.compact().is_err() && self.pending.len() as u64 > SMALL {
                self.thin_out();
            }
        }
    }

    /// Goes on with the file there is, which is whole so far and has these records.
    pub(super) fn go_on(&mut self, len: u64, records: &[Record]) -> io::Result<()> {
        let file = File::options().read(true).write(true).open(&self.path)?;
        file.set_len(len)?;
        (self.file, self.len) = (Some(file), len);
        self.count_all(records);
        Ok(())
    }

    /// Puts a file with these records, and no others, in the place of the old one.
    pub(super) fn rewrite(&mut self, records: &[Record]) -> io::Result<()> {
        let written = self.replace(&self.content(records), !records.is_empty());
        if written.is_ok() {
            self.live.clear();
            self.count_all(records);
            self.pending.clear();
        }
        written
    }

    /// A file with these records and no others.
    pub(super) fn content(&self, records: &[Record]) -> Vec<u8> {
        let mut bytes = header(self.key);
        for record in records {
            bytes.extend(frame(self.key, &record.encode()));
        }
        bytes
    }

    /// Writes everything that waits, by one call. What the disk does not take waits on.
    fn write(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let written = match &self.file {
            Some(file) => match file.write_at(&self.pending, self.len) {
                Ok(count) => count == self.pending.len(),
                Err(_) => false,
            },
            None => {
                let bytes = [header(self.key), self.pending.clone()].concat();
                if self.replace(&bytes, false).is_ok() {
                    self.pending.clear();
                }
                return;
            }
        };
        // After a part of it the next write begins at the same place again.
        if written {
            self.len += self.pending.len() as u64;
            self.pending.clear();
        }
    }

    fn compact(&mut self) -> io::Result<()> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::StorageFull)?;
        let whole = usize::try_from(self.len).map_err(io::Error::other)?;
        let mut bytes = vec![0; whole];
        file.read_exact_at(&mut bytes, 0)?;
        bytes.extend(&self.pending);
        let frames = bytes.get(HEADER..).unwrap_or_default();
        let (payloads, good) = split(self.key, frames);
        if good < frames.len() {
            // Somebody else wrote into it: what is behind that must not be lost too.
            return Err(io::ErrorKind::InvalidData.into());
        }
        let replayed = Replayed::of(payloads.into_iter().map(|payload| &frames[payload]));
        self.rewrite(&replayed.records())
    }

    /// Lets go of what came and went while there was no room, so that a disk that stays full does
    /// not fill the memory too. Whoever had a leaf last stays: else it would be of the one before.
    fn thin_out(&mut self) {
        let (payloads, _) = split(self.key, &self.pending);
        let records: Vec<Option<Record>> =
            payloads.iter().map(|payload| Record::decode(&self.pending[payload.clone()])).collect();
        let mut came = HashSet::new();
        let mut last = HashMap::new();
        for record in records.iter().flatten() {
            if let Record::Launched(launched) = record {
                came.insert(launched.id);
                last.extend(launched.leaf.clone().map(|leaf| (leaf, launched.id)));
            }
        }
        let had_a_leaf_last: HashSet<Id> = last.into_values().collect();
        let mut kept = Vec::new();
        for record in records.into_iter().flatten() {
            let id = record.id();
            let went = came.contains(&id) && !self.live.contains_key(&id);
            if !went || had_a_leaf_last.contains(&id) {
                kept.extend(frame(self.key, &record.encode()));
            }
        }
        self.pending = kept;
    }

    /// The new file is on the disk before it takes the place of one that has something to lose.
    fn replace(&mut self, bytes: &[u8], sync: bool) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let written = write_new(&new, bytes).and_then(|file| {
            if sync {
                file.sync_data()?;
            }
            fs::rename(&new, &self.path)?;
            Ok(file)
        });
        match written {
            Ok(file) => (self.file, self.len) = (Some(file), bytes.len() as u64),
            Err(error) => {
                // What is left of it takes room that is missing already.
                _ = fs::remove_file(&new);
                return Err(error);
            }
        }
        Ok(())
    }

    fn count_all(&mut self, records: &[Record]) {
        for record in records {
            self.count(record, frame(self.key, &record.encode()).len());
        }
    }

    fn count(&mut self, record: &Record, bytes: usize) {
        let id = record.id();
        match record {
            Record::Launched(_)
            | Record::Started { .. }
            | Record::Ended { .. }
            | Record::TimedOut { .. }
            | Record::Said { .. }
            | Record::Moved { .. } => {
                *self.live.entry(id).or_default() += bytes as u64;
            }
            Record::Failed { .. } | Record::Forgotten { .. } => _ = self.live.remove(&id),
        }
    }
}

/// A file for this user alone, with these bytes.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::sample::launched;

    #[test]
    fn what_comes_and_goes_while_the_disk_is_full_does_not_fill_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let (missing, key) = (folder.path().join("later"), HashKey::random());
        let mut store = Store::new(missing.join("journal"), key);
        let (stays, last) = (Id::fresh(), Id::fresh());
        store.append(&launched(stays, Some("/leaf")));
        for number in 0..7000 {
            let id = if number == 6999 { last } else { Id::fresh() };
            store.append(&launched(id, Some("/leaf")));
            store.append(&Record::Forgotten { id });
        }
        assert!(store.pending.len() > 1 << 20);
        store.tend();
        assert!(store.pending.len() < 1000, "{}", store.pending.len());
        // There is room: everything of interest is written, in order.
        fs::create_dir(&missing).unwrap();
        store.tend();
        assert_eq!((store.pending.len(), store.len), (0, fs::metadata(&store.path).unwrap().len()));
        let bytes = fs::read(&store.path).unwrap();
        let (payloads, _) = split(key, &bytes[HEADER..]);
        let replayed = Replayed::of(payloads.into_iter().map(|at| &bytes[HEADER..][at]));
        assert_eq!(replayed.pasts.keys().copied().collect::<Vec<_>>(), [stays]);
        assert_eq!(replayed.pasts[&stays].launched.leaf, None, "another one had it after that");
    }
}
