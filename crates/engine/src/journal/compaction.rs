//! Replaces the journal's file by a smaller one while records are appended.
//!
//! The store is locked twice, each time for a moment: a [`Compaction`] is what the file had when it
//! began, a [`Compacted`] the smaller file with the live records. What was appended meanwhile is
//! added before it replaces the old file.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::fingerprint::HashKey;
use super::frames::{HEADER, frame, header, split};
use super::live::LiveRecords;
use super::record::Record;
use super::replay::Replayed;

/// A journal at the beginning of its compaction.
#[derive(Debug)]
pub(super) struct Compaction {
    pub(super) key: HashKey,
    pub(super) old: File,
    /// The length of the valid part of the old file, which never changes again.
    pub(super) len: u64,
    /// Frames that waited for disk space.
    pub(super) pending: Vec<u8>,
    /// Where the new file is created.
    pub(super) new: PathBuf,
    /// How many times the file was gone and was written again.
    pub(super) generation: u64,
}

/// The smaller file, with a name of its own.
#[derive(Debug)]
pub(super) struct Compacted {
    pub(super) file: File,
    pub(super) len: u64,
    pub(super) live: LiveRecords,
    /// How many bytes of the old file and its pending frames it replaces.
    pub(super) replaces: u64,
    pub(super) new: PathBuf,
    pub(super) generation: u64,
}

impl Compaction {
    /// Reads the old file and writes the new one.
    pub(super) fn run(self, write: WriteFile) -> io::Result<Compacted> {
        let replaces = self.len + self.pending.len() as u64;
        let content = Content::new(self.key, self.replay()?.records());
        let compacted = Compacted::write(&content, self.new, write)?;
        Ok(Compacted { replaces, generation: self.generation, ..compacted })
    }

    fn replay(&self) -> io::Result<Replayed> {
        let whole = usize::try_from(self.len).map_err(io::Error::other)?;
        let mut bytes = vec![0; whole];
        self.old.read_exact_at(&mut bytes, 0)?;
        bytes.extend(&self.pending);
        let frames = bytes.get(HEADER..).unwrap_or_default();
        let (payloads, good) = split(self.key, frames);
        if good < frames.len() {
            // Another program wrote into it: the records after that must not be lost, too.
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Replayed::of(payloads))
    }
}

impl Compacted {
    /// Writes a file with this content. It replaces nothing yet.
    pub(super) fn write(content: &Content, new: PathBuf, write: WriteFile) -> io::Result<Self> {
        let Content { bytes, live } = content;
        let file = remove_on_error(&new, write(&new, bytes))?;
        let (len, live) = (bytes.len() as u64, live.clone());
        Ok(Self { file, len, live, replaces: 0, new, generation: 0 })
    }

    /// Replaces the journal at `path`, with these bytes added.
    pub(super) fn put_in_place(&self, path: &Path, added: &[u8]) -> io::Result<()> {
        let put = self.file.write_all_at(added, self.len);
        remove_on_error(&self.new, put.and_then(|()| fs::rename(&self.new, path)))
    }
}

/// A file's bytes, and the size of its live records.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) bytes: Vec<u8>,
    pub(super) live: LiveRecords,
}

impl Content {
    /// Of a file with these records.
    pub(super) fn new(key: HashKey, records: impl IntoIterator<Item = Record>) -> Self {
        let (mut bytes, mut live) = (header(key), LiveRecords::default());
        for record in records {
            let frame = frame(key, &record.encode());
            live.count(&record, frame.len() as u64);
            bytes.extend(frame);
        }
        Self { bytes, live }
    }
}

/// [`write_new`] or [`write_synced`].
pub(super) type WriteFile = fn(&Path, &[u8]) -> io::Result<File>;

/// Creates a file for this user alone, with these bytes.
pub(super) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut options = File::options();
    let options = options.read(true).write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// As [`write_new`], and waits until the bytes are on disk.
pub(super) fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let file = write_new(path, bytes)?;
    file.sync_data()?;
    Ok(file)
}

/// Removes a new file that could not be completed: it takes space that may be short.
pub(super) fn remove_on_error<T>(new: &Path, made: io::Result<T>) -> io::Result<T> {
    if made.is_err() {
        _ = fs::remove_file(new);
    }
    made
}
