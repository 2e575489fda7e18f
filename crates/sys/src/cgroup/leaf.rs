//! A leaf: the cgroup that one tree lives in.

use std::ffi::{CString, OsStr};
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

/// A cgroup below our own. It stays until [`Leaf::remove`]: whoever drops one leaves the folder.
#[derive(Debug)]
pub struct Leaf {
    folder: PathBuf,
    /// Linux counts the kills of a cgroup and compares the count of the one a child is born in
    /// with that of the one its parent is in: a leaf that was killed once kills whoever is born in
    /// it afterwards (seen on 6.18; `cgroup_css_set_fork` and `cgroup_post_fork`).
    killed: AtomicBool,
    /// Whether the kernel counts the memory of those in it, and so remembers who was.
    counts_memory: bool,
    /// The lock on a dead run's branch, which keeps its name from being given to another.
    _claim: Option<Arc<OwnedFd>>,
}

/// What `cgroup.events` says of a leaf and all that is below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Somebody lives in it. A zombie does not count, a thread does.
    pub populated: bool,
    pub frozen: bool,
}

impl Leaf {
    pub(super) fn make(folder: PathBuf) -> io::Result<Self> {
        fs::create_dir(&folder)?;
        Ok(Self::at(folder))
    }

    fn at(folder: PathBuf) -> Self {
        let counts_memory = folder.join("memory.peak").exists();
        Self { folder, killed: AtomicBool::new(false), counts_memory, _claim: None }
    }

    /// One of a dead run. Counts as killed, so that it is removed and not used for another tree.
    pub(super) fn claimed(folder: PathBuf, claim: Arc<OwnedFd>) -> Self {
        Self { killed: AtomicBool::new(true), _claim: Some(claim), ..Self::at(folder) }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder, as a request for a spawn takes it.
    pub fn path(&self) -> CString {
        CString::new(self.folder.as_os_str().as_bytes()).expect("a path that was used has no NUL")
    }

    /// Everybody in it and below it, each once. A leaf that is gone has nobody.
    pub fn members(&self) -> io::Result<Vec<i32>> {
        let mut pids = Vec::new();
        for folder in with_inner(&self.folder)? {
            // Whoever lives in a pid namespace that we do not see is shown as 0.
            let text = absent_is_empty(fs::read(folder.join("cgroup.procs")))?;
            let numbers = text.split(|byte| *byte == b'\n');
            let pid = |line: &[u8]| std::str::from_utf8(line).ok()?.parse::<i32>().ok();
            pids.extend(numbers.filter_map(pid).filter(|pid| *pid > 0));
        }
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }

    /// What it is at this instant. A leaf that is gone is empty.
    pub fn state(&self) -> io::Result<State> {
        match self.events() {
            Err(error) if gone(&error) => Ok(State::EMPTY),
            events => read_state(events?),
        }
    }

    /// Kills everybody in it and below it, whoever is born meanwhile too. Nobody can be born in it
    /// afterwards.
    pub fn kill(&self) -> io::Result<()> {
        self.killed.store(true, Ordering::Relaxed);
        // Not `fs::write`, which would make the file in a folder that is none of a cgroup.
        let kill = fs::OpenOptions::new().write(true).open(self.folder.join("cgroup.kill"));
        absent_is_empty(kill.and_then(|mut file| io::Write::write_all(&mut file, b"1")))
    }

    /// Its `cgroup.events`: exceptional (`POLLPRI`) when they change after a [`read_state`].
    pub fn events(&self) -> io::Result<OwnedFd> {
        fs::File::open(self.folder.join("cgroup.events")).map(OwnedFd::from)
    }

    /// The most memory it ever used, in bytes, where the kernel counts that.
    pub fn peak_memory(&self) -> Option<u64> {
        if !self.counts_memory {
            return None;
        }
        let text = fs::read_to_string(self.folder.join("memory.peak")).ok()?;
        text.trim().parse().ok()
    }

    /// Whether it is as good as a fresh one, by what [`Leaf::state`] has just said: empty, and
    /// nothing was changed in it that the next tree would notice.
    pub fn reusable(&self, state: State) -> bool {
        !self.killed.load(Ordering::Relaxed)
            && state == State::EMPTY
            && !self.counts_memory
            // A folder has a link of its own, one from above and one from each folder in it.
            && fs::metadata(&self.folder).is_ok_and(|folder| folder.nlink() <= 2)
    }

    /// Removes it and what a tree has made below it; refused (`EBUSY`) while somebody lives there.
    pub fn remove(&self) -> io::Result<()> {
        remove(&self.folder)
    }
}

impl State {
    const EMPTY: Self = Self { populated: false, frozen: false };

    fn parse(text: &[u8]) -> Self {
        let is_set = |name: &[u8]| {
            let mut lines = text.split(|byte| *byte == b'\n');
            lines.any(|line| line.strip_prefix(name) == Some(b" 1"))
        };
        Self { populated: is_set(b"populated"), frozen: is_set(b"frozen") }
    }
}

/// Reads the open `cgroup.events` of a leaf again. From then on it waits for the next change.
pub fn read_state(events: impl AsFd) -> io::Result<State> {
    let mut text = [0; 256];
    match rustix::io::pread(events, &mut text, 0) {
        Ok(len) => Ok(State::parse(&text[..len])),
        Err(errno) => absent_is_empty(Err(errno.into())).map(|()| State::EMPTY),
    }
}

/// Waits at most so long until nobody lives in the leaf whose events these are; blocks.
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

/// Removes a cgroup and those below it, the deepest first.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    for inner in with_inner(folder)?.into_iter().rev() {
        absent_is_empty(fs::remove_dir(inner))?;
    }
    Ok(())
}

/// The folder and those below it, each before its own.
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

/// The files of a cgroup that was removed are either not there or have no device behind them.
fn absent_is_empty<T: Default>(answer: io::Result<T>) -> io::Result<T> {
    match answer {
        Err(error) if gone(&error) => Ok(T::default()),
        answer => answer,
    }
}

fn gone(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NODEV))
}

/// A name as it stands in a path.
pub(super) fn name(folder: &Path) -> &[u8] {
    folder.file_name().map_or(b"", OsStr::as_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_by_name() {
        let check = |text: &str, populated, frozen| {
            assert_eq!(State::parse(text.as_bytes()), State { populated, frozen }, "{text:?}");
        };
        check("populated 1\nfrozen 0\n", true, false);
        check("populated 0\nfrozen 1\n", false, true);
        check("frozen 1\npopulated 10\n", false, true);
        check("", false, false);
    }

    #[test]
    fn a_leaf_that_is_gone_has_nobody() {
        let leaf = Leaf::at("/sys/fs/cgroup/no/such/leaf".into());
        assert_eq!(leaf.members().unwrap(), []);
        assert_eq!(leaf.state().unwrap(), State { populated: false, frozen: false });
        leaf.kill().unwrap();
        leaf.remove().unwrap();
    }

    #[test]
    fn peak_memory_is_told_where_the_kernel_counts_it_and_such_a_leaf_is_used_once() {
        let folder = tempfile::tempdir().unwrap();
        let leaf = Leaf::at(folder.path().to_owned());
        assert_eq!((leaf.peak_memory(), leaf.reusable(State::EMPTY)), (None, true));
        fs::write(folder.path().join("memory.peak"), "4096\n").unwrap();
        let leaf = Leaf::at(folder.path().to_owned());
        assert_eq!((leaf.peak_memory(), leaf.reusable(State::EMPTY)), (Some(4096), false));
    }
}
