//! A cgroup: the cgroup of one process tree.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::controllers::accounts_memory;
use super::limits::OomKills;
use crate::procfs::{pids, words};

/// A cgroup below our own. Dropping it leaves the folder; [`Cgroup::remove`] removes it.
#[derive(Debug)]
pub struct Cgroup {
    pub(super) folder: PathBuf,
    /// Linux counts the kills of a cgroup, and compares the count of a child's cgroup with that of
    /// its parent's. So a cgroup that was killed once also kills every process that starts in it
    /// later (seen on 6.18; `cgroup_css_set_fork` and `cgroup_post_fork`).
    killed: AtomicBool,
    /// Whether the kernel accounts memory here. Its counts outlive the processes.
    pub(super) counts_memory: bool,
    /// A tree has used it before: its peak is not of this one.
    pub(super) was_used: AtomicBool,
    /// It has limits, which the next tree must not have.
    pub(super) limited: AtomicBool,
    /// The lock on a dead run's parent, which keeps its name from being reused.
    _claim: Option<Arc<OwnedFd>>,
}

/// The state of a cgroup and everything below it, from `cgroup.events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CgroupState {
    /// It has a live process. A zombie does not count, a thread does.
    pub populated: bool,
    pub frozen: bool,
}

impl Cgroup {
    pub(super) fn at(folder: PathBuf) -> Self {
        let counts_memory = accounts_memory(&folder);
        let [killed, was_used, limited] = [false; 3].map(AtomicBool::new);
        Self { folder, killed, counts_memory, was_used, limited, _claim: None }
    }

    /// A cgroup of a dead run. It counts as killed, so that it is removed and not reused for another
    /// tree.
    pub(super) fn claimed(folder: PathBuf, claim: Arc<OwnedFd>) -> Self {
        let (killed, was_used) = (AtomicBool::new(true), AtomicBool::new(true));
        Self { killed, was_used, _claim: Some(claim), ..Self::at(folder) }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder in the form that a spawn request takes.
    pub fn path(&self) -> CString {
        CString::new(self.folder.as_os_str().as_bytes()).expect("a path that was used has no NUL")
    }

    pub fn is_limited(&self) -> bool {
        self.limited.load(Ordering::Relaxed)
    }

    /// The pids in this cgroup and below it, each once. A cgroup that is gone has none.
    pub fn members(&self) -> io::Result<Vec<i32>> {
        let mut members = Vec::new();
        for folder in with_inner(&self.folder)? {
            let list = absent_is_empty(fs::read_to_string(folder.join("cgroup.procs")))?;
            // A process in a pid namespace that we cannot see is shown as 0.
            members.extend(pids(&list).filter(|pid| *pid > 0));
        }
        members.sort_unstable();
        members.dedup();
        Ok(members)
    }

    /// The current state. A cgroup that is gone is empty.
    pub fn state(&self) -> io::Result<CgroupState> {
        state_at(&self.folder)
    }

    /// Kills every process in it and below it, including those that start meanwhile. No process can
    /// start in it afterwards.
    pub fn kill(&self) -> io::Result<()> {
        self.killed.store(true, Ordering::Relaxed);
        // Not `fs::write`, which would create the file if the folder is not a cgroup.
        let kill = fs::OpenOptions::new().write(true).open(self.folder.join("cgroup.kill"));
        absent_is_empty(kill.and_then(|mut file| io::Write::write_all(&mut file, b"1")))
    }

    /// Opens `cgroup.events`, which polls `POLLPRI` when it changes after a [`read_state`].
    pub fn events(&self) -> io::Result<OwnedFd> {
        events_at(&self.folder)
    }

    /// The peak memory in bytes, if the kernel accounts it and no other tree was here before.
    pub fn peak_memory(&self) -> Option<u64> {
        if !self.counts_memory || self.was_used.load(Ordering::Relaxed) {
            return None;
        }
        let text = fs::read_to_string(self.folder.join("memory.peak")).ok()?;
        text.trim().parse().ok()
    }

    /// Ends its use by a tree: from now on it has no [`Cgroup::peak_memory`]. Returns whether it is as
    /// good as a new one, given its current [`Cgroup::state`]: empty, and with nothing changed that the
    /// next tree would notice.
    pub fn end_use(&self, state: CgroupState) -> bool {
        self.was_used.store(true, Ordering::Relaxed);
        !self.killed.load(Ordering::Relaxed)
            && !self.limited.load(Ordering::Relaxed)
            && state == CgroupState::EMPTY
            && (!self.counts_memory || self.oom_kills() == Some(OomKills::default()))
            && has_no_subfolders(&self.folder)
    }

    /// Removes it and everything a tree created below it. Fails (`EBUSY`) while a process lives
    /// there.
    pub fn remove(&self) -> io::Result<()> {
        remove(&self.folder)
    }
}

impl CgroupState {
    const EMPTY: Self = Self { populated: false, frozen: false };

    fn parse(text: &str) -> Self {
        let is_set = |name| words(text, name).next() == Some("1");
        Self { populated: is_set("populated"), frozen: is_set("frozen") }
    }
}

/// The current state of the cgroup in this folder. One that is gone is empty.
pub(super) fn state_at(folder: &Path) -> io::Result<CgroupState> {
    match events_at(folder) {
        Err(error) if gone(&error) => Ok(CgroupState::EMPTY),
        events => read_state(events?),
    }
}

fn events_at(folder: &Path) -> io::Result<OwnedFd> {
    fs::File::open(folder.join("cgroup.events")).map(OwnedFd::from)
}

/// Reads the open `cgroup.events` of a cgroup again. It then polls for the next change.
pub fn read_state(events: impl AsFd) -> io::Result<CgroupState> {
    let mut text = [0; 256];
    match rustix::io::pread(events, &mut text, 0) {
        Ok(len) => Ok(CgroupState::parse(&String::from_utf8_lossy(&text[..len]))),
        Err(errno) => absent_is_empty(Err(errno.into())).map(|()| CgroupState::EMPTY),
    }
}

/// Blocks until the cgroup with these events is empty, for at most `patience`.
pub fn wait_until_empty(events: impl AsFd, patience: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + patience;
    while read_state(&events)?.populated {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&events, PollFlags::PRI)], Some(&timeout)) {
            Ok(0) => return Ok(false),
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(true)
}

/// Removes a cgroup and those below it, deepest first.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    for inner in with_inner(folder)?.into_iter().rev() {
        absent_is_empty(fs::remove_dir(inner))?;
    }
    Ok(())
}

/// The folder and all folders below it, parents first.
fn with_inner(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = vec![folder.to_owned()];
    let mut next = 0;
    while let Some(folder) = folders.get(next).cloned() {
        folders.extend(subfolders(&folder)?);
        next += 1;
    }
    Ok(folders)
}

pub(super) fn subfolders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if has_no_subfolders(folder) {
        return Ok(Vec::new());
    }
    let entries = match fs::read_dir(folder) {
        Err(error) if gone(&error) => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut folders = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
        }
    }
    Ok(folders)
}

/// One call instead of five. A folder has one link from itself, one from its parent and one from each
/// subfolder, except on file systems that do not count them.
fn has_no_subfolders(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|folder| folder.nlink() == 2)
}

/// The files of a removed cgroup are either missing (`ENOENT`) or have no device (`ENODEV`).
fn absent_is_empty<T: Default>(answer: io::Result<T>) -> io::Result<T> {
    match answer {
        Err(error) if gone(&error) => Ok(T::default()),
        answer => answer,
    }
}

fn gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NODEV))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_by_name() {
        let check = |text: &str, populated, frozen| {
            assert_eq!(CgroupState::parse(text), CgroupState { populated, frozen }, "{text:?}");
        };
        check("populated 1\nfrozen 0\n", true, false);
        check("populated 0\nfrozen 1\n", false, true);
        check("frozen 1\npopulated 10\n", false, true);
        check("", false, false);
    }

    #[test]
    fn a_cgroup_that_is_gone_has_nobody() {
        let cgroup = Cgroup::at("/sys/fs/cgroup/no/such/cgroup".into());
        assert_eq!(cgroup.members().unwrap(), []);
        assert_eq!(cgroup.state().unwrap(), CgroupState { populated: false, frozen: false });
        cgroup.kill().unwrap();
        cgroup.remove().unwrap();
    }

    #[test]
    fn counts_of_one_tree_are_never_those_of_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        let cgroup = Cgroup::at(folder.path().to_owned());
        assert_eq!((cgroup.peak_memory(), cgroup.end_use(CgroupState::EMPTY)), (None, true));
        write("memory.peak", "4096\n");
        write("memory.events", "oom 0\noom_kill 0\n");
        let cgroup = Cgroup::at(folder.path().to_owned());
        assert_eq!(cgroup.peak_memory(), Some(4096));
        assert!(cgroup.end_use(CgroupState::EMPTY));
        assert_eq!(cgroup.peak_memory(), None);
        write("memory.events", "oom 0\noom_kill 1\n");
        assert!(!cgroup.end_use(CgroupState::EMPTY));
    }
}
