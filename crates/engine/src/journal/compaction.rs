//! A smaller file in the place of the journal's, made while records go on to be appended.
//!
//! The store is looked at twice, each time for a moment: a [`Compaction`] is what the file had when
//! it began, a [`Compacted`] the smaller file with what that comes to. What was appended meanwhile
//! is put behind it before it takes the old one's place.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::fingerprint::HashKey;
use super::frames::{HEADER, frame, header, split};
use super::live::Live;
use super::record::Record;
use super::replay::Replayed;

/// What is to be made smaller.
#[derive(Debug)]
pub(super) struct Compaction {
    pub(super) key: HashKey,
    pub(super) old: File,
    /// How far the old file was whole. What is before that is never written again.
    pub(super) len: u64,
    /// What waited for room behind it.
    pub(super) pending: Vec<u8>,
    /// Where the new file is made.
    pub(super) new: PathBuf,
    /// How many times the old one has taken the place of one that was gone.
    pub(super) generation: u64,
}

/// The smaller file, on the disk under a name of its own.
#[derive(Debug)]
pub(super) struct Compacted {
    pub(super) file: File,
    pub(super) len: u64,
    pub(super) live: Live,
    /// How much of the old journal it stands for, with what waited there.
    pub(super) stands_for: u64,
    pub(super) new: PathBuf,
    pub(super) generation: u64,
}

impl Compaction {
    /// Reads, writes and waits for the disk.
    pub(super) fn run(self) -> io::Result<Compacted> {
        self.run_with(write_synced)
    }

    /// Reads and writes. For a journal that has no file in its place: there is nothing on the disk
    /// to lose.
    pub(super) fn run_without_sync(self) -> io::Result<Compacted> {
        self.run_with(write_new)
    }

    fn run_with(self, write: fn(&Path, &[u8]) -> io::Result<File>) -> io::Result<Compacted> {
        let records = self.replay()?.records();
        let bytes = content(self.key, &records);
        let file = or_remove(&self.new, write(&self.new, &bytes))?;
        let (len, stands_for) = (bytes.len() as u64, self.len + self.pending.len() as u64);
        let live = Live::of(self.key, &records);
        let Self { new, generation, .. } = self;
        Ok(Compacted { file, len, live, stands_for, new, generation })
    }

    fn replay(&self) -> io::Result<Replayed> {
        let whole = usize::try_from(self.len).map_err(io::Error::other)?;
        let mut bytes = vec![0; whole];
        self.old.read_exact_at(&mut bytes, 0)?;
        bytes.extend(&self.pending);
        let frames = bytes.get(HEADER..).unwrap_or_default();
        let (payloads, good) = split(self.key, frames);
        if good < frames.len() {
            // Somebody else wrote into it: what is behind that must not be lost too.
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Replayed::of(payloads.into_iter().map(|payload| &frames[payload])))
    }
}

impl Compacted {
    /// Takes the place of the journal at `path`, with these bytes behind it.
    pub(super) fn put_in_place(&self, path: &Path, behind: &[u8]) -> io::Result<()> {
        let put = self.file.write_all_at(behind, self.len);
        or_remove(&self.new, put.and_then(|()| fs::rename(&self.new, path)))
    }
}

/// A file with these records and no others.
pub(super) fn content(key: HashKey, records: &[Record]) -> Vec<u8> {
    let mut bytes = header(key);
    for record in records {
        bytes.extend(frame(key, &record.encode()));
    }
    bytes
}

/// A file for this user alone, with these bytes.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// The same, on the disk before anything that has something to lose gives way to it.
pub(super) fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let file = write_new(path, bytes)?;
    file.sync_data()?;
    Ok(file)
}

/// Removes a new file that came to nothing: it takes room that is missing already.
pub(super) fn or_remove<T>(new: &Path, made: io::Result<T>) -> io::Result<T> {
    if made.is_err() {
        _ = fs::remove_file(new);
    }
    made
}
