//! Folders that confined commands could write, in this engine and earlier ones.
//!
//! A command may have created a symbolic link in one of them to redirect the next command, or
//! replaced a folder in it. The list is a file to which engines append: a NUL ends each record.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lastbyte_sys::resolve::{FileId, Link};

/// The record file, and what was last read from it.
#[derive(Debug)]
pub(super) struct RootRecord {
    pub(super) file: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    read_to: u64,
    folders: Arc<Folders>,
}

/// The folders of a record file.
#[derive(Debug, Clone, Default)]
pub(super) struct Folders {
    /// The folders that each path referred to, in order of use.
    by_path: HashMap<PathBuf, Vec<Used>>,
    files: HashSet<FileId>,
}

/// Which folder a path referred to, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) file: FileId,
    pub(super) since: SystemTime,
}

/// A longer file loses its older half: about ten thousand folders.
const MOST_BYTES: u64 = 1 << 20;

/// Every workspace includes it unless excluded, so any command may have put a link there.
const ALWAYS: &str = "/tmp";

impl RootRecord {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file, known: Mutex::default() }
    }

    /// The known folders, including additions by other engines.
    pub(super) fn folders(&self) -> io::Result<Arc<Folders>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match fs::metadata(&self.file) {
            Ok(found) if found.len() != known.read_to => known.read(&self.file)?,
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(_) | Err(_) => {}
        }
        Ok(Arc::clone(&known.folders))
    }

    /// Records what a command is about to be able to write.
    pub(super) fn add(&self, roots: &[(&Path, FileId)], now: SystemTime) -> io::Result<()> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new = roots.iter().filter(|(path, file)| !known.folders.has(path, *file));
        let new: Vec<u8> = new.flat_map(|(path, file)| record(path, *file, now)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.file)?;
        file.write_all(&new)?;
        // Another engine may have added something before.
        known.read(&self.file)
    }
}

impl Known {
    fn read(&mut self, path: &Path) -> io::Result<()> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        if len < self.read_to {
            *self = Self::default();
        }
        file.seek(SeekFrom::Start(self.read_to))?;
        let mut bytes = Vec::new();
        file.take(len - self.read_to).read_to_end(&mut bytes)?;
        // A partial record is read once it is complete.
        let whole = bytes.iter().rposition(|byte| *byte == 0).map_or(0, |last| last + 1);
        let folders = Arc::make_mut(&mut self.folders);
        bytes[..whole].split(|byte| *byte == 0).filter_map(parse).for_each(|(path, used)| {
            folders.insert(path, used);
        });
        self.read_to += whole as u64;
        if self.read_to > MOST_BYTES { self.shorten(path) } else { Ok(()) }
    }

    /// Keeps the newer half. Replaces the file atomically, so other engines see one or the other.
    fn shorten(&mut self, path: &Path) -> io::Result<()> {
        let bytes = fs::read(path)?;
        let half = bytes.len() / 2;
        let end_of_record = bytes[half..].iter().position(|byte| *byte == 0);
        // Bytes without a terminator are not a record of ours. Keeping them would not shorten the
        // file.
        let begin = end_of_record.map_or(bytes.len(), |at| half + at + 1);
        let shorter = path.with_extension("new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&shorter)?;
        file.write_all(&bytes[begin..])?;
        fs::rename(&shorter, path)?;
        *self = Self::default();
        self.read(path)
    }
}

impl Folders {
    fn insert(&mut self, path: PathBuf, used: Used) {
        self.files.insert(used.file);
        self.by_path.entry(path).or_default().push(used);
    }

    fn has(&self, path: &Path, file: FileId) -> bool {
        self.by_path.get(path).is_some_and(|uses| uses.iter().any(|used| used.file == file))
    }

    /// Whether a confined command could have created this link.
    pub(super) fn contain(&self, link: &Link) -> bool {
        let named = link.path.ancestors().skip(1).any(|above| self.is_written(above));
        named || link.above.iter().any(|file| self.files.contains(file))
    }

    /// What a path was first used for, if a confined command could have replaced it.
    pub(super) fn first_use(&self, path: &Path) -> Option<Used> {
        let replaceable = path.ancestors().skip(1).any(|above| self.is_written(above));
        let first = self.by_path.get(path).and_then(|uses| uses.first());
        first.copied().filter(|_| replaceable)
    }

    fn is_written(&self, folder: &Path) -> bool {
        folder == Path::new(ALWAYS) || self.by_path.contains_key(folder)
    }
}

/// `SECONDS DEVICE INODE PATH`; a path contains no NUL.
fn record(path: &Path, file: FileId, now: SystemTime) -> Vec<u8> {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let numbers = format!("{since} {} {} ", file.device, file.inode);
    [numbers.as_bytes(), path.as_os_str().as_bytes(), b"\0"].concat()
}

fn parse(record: &[u8]) -> Option<(PathBuf, Used)> {
    let mut parts = record.splitn(4, |byte| *byte == b' ');
    let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse::<u64>().ok();
    let (since, device, inode) = (number()?, number()?, number()?);
    let path = PathBuf::from(OsString::from_vec(parts.next()?.to_vec()));
    let since = UNIX_EPOCH.checked_add(Duration::from_secs(since))?;
    Some((path, Used { file: FileId { device, inode }, since }))
}

#[cfg(test)]
impl Folders {
    /// As if these had been used at this time.
    pub(super) fn from_list(folders: &[(&str, u64)], since: SystemTime) -> Self {
        let mut known = Self::default();
        for (path, inode) in folders {
            let file = FileId { device: 0, inode: *inode };
            known.insert(path.into(), Used { file, since });
        }
        known
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId { device: 7, inode: 9 };

    fn link(path: &str, above: &[FileId]) -> Link {
        Link { path: path.into(), file: FileId::default(), above: above.to_vec() }
    }

    #[test]
    fn what_one_engine_writes_down_another_knows() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("roots");
        let (first, second) = (RootRecord::new(file.clone()), RootRecord::new(file));
        assert!(!second.folders().unwrap().contain(&link("/w/link", &[])));
        first.add(&[(Path::new("/w"), FILE)], SystemTime::now()).unwrap();
        let folders = second.folders().unwrap();
        assert!(folders.contain(&link("/w/link", &[])));
        assert!(folders.contain(&link("/moved/link", &[FILE])), "under another name");
        assert!(folders.contain(&link("/tmp/link", &[])), "always");
        assert!(!folders.contain(&link("/ww/link", &[])));
        assert!(!folders.contain(&link("/w", &[])), "beside it");
    }

    #[test]
    fn the_same_folder_is_written_down_once_and_half_a_record_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("roots");
        let written = RootRecord::new(file.clone());
        for _ in 0..3 {
            written.add(&[(Path::new("/a b\n"), FILE)], UNIX_EPOCH).unwrap();
        }
        assert_eq!(fs::read(&file).unwrap(), b"0 7 9 /a b\n\0");
        fs::write(&file, b"0 7 9 /a b\n\x000 7 9 /other").unwrap();
        let folders = RootRecord::new(file).folders().unwrap();
        assert!(folders.has(Path::new("/a b\n"), FILE) && folders.by_path.len() == 1);
    }

    #[test]
    fn a_path_keeps_its_first_use_and_each_folder_is_written_down_once() {
        let folder = tempfile::tempdir().unwrap();
        let written = RootRecord::new(folder.path().join("roots"));
        let (other, later) = (FileId { inode: 10, ..FILE }, UNIX_EPOCH + Duration::from_secs(5));
        let path = Path::new("/tmp/w");
        for (file, now) in [(FILE, UNIX_EPOCH), (other, later), (FILE, later), (other, later)] {
            written.add(&[(path, file)], now).unwrap();
        }
        let first = Used { file: FILE, since: UNIX_EPOCH };
        assert_eq!(written.folders().unwrap().first_use(path), Some(first));
        assert_eq!(fs::read(written.file).unwrap(), b"0 7 9 /tmp/w\x005 7 10 /tmp/w\0");
    }

    #[test]
    fn a_long_record_keeps_its_newer_half() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("roots");
        let records = (0..40_000).flat_map(|number| {
            record(&PathBuf::from(format!("/w/{number}/{}", "x".repeat(20))), FILE, UNIX_EPOCH)
        });
        fs::write(&file, records.collect::<Vec<u8>>()).unwrap();
        let folders = RootRecord::new(file.clone()).folders().unwrap();
        let known = |number: u32| {
            let path = format!("/w/{number}/{}", "x".repeat(20));
            folders.has(Path::new(&path), FILE)
        };
        assert!(known(39_999) && !known(0));
        assert!(fs::metadata(&file).unwrap().len() <= MOST_BYTES);
    }

    #[test]
    fn a_damaged_record_is_shortened_too() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("roots");
        let half = MOST_BYTES as usize + 1;
        fs::write(&file, [vec![0; half], vec![b'x'; half]].concat()).unwrap();
        let folders = RootRecord::new(file.clone()).folders().unwrap();
        assert!(folders.by_path.is_empty());
        assert_eq!(fs::metadata(&file).unwrap().len(), 0);
    }
}
