//! A cgroup for the measured server, because a server also looks at cgroups that others left.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_sys::cgroup::own_folder;

/// strace ends a little after the server that it traces.
const PATIENCE: Duration = Duration::from_secs(5);

/// A new cgroup for this program and everything it starts, until it is dropped.
pub(super) struct OwnCgroup {
    folder: PathBuf,
    before: PathBuf,
}

impl OwnCgroup {
    /// Fails if servers cannot create cgroups either.
    pub(super) fn enter() -> io::Result<Self> {
        let before = own_folder().map_err(io::Error::other)?;
        // Not `lastbyte-…`, because other servers remove such cgroups of dead servers.
        let folder = before.join(format!("xtask-cost-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let own = Self { folder, before };
        move_into(&own.folder)?;
        Ok(own)
    }
}

impl Drop for OwnCgroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        // An empty cgroup that stays behind does no harm.
        _ = move_into(&self.before);
        while remove(&self.folder).is_err() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn move_into(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("cgroup.procs"), std::process::id().to_string())
}

/// Also removes the cgroups below, which killed servers leave behind.
fn remove(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(folder)
}
