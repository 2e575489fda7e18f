//! A cgroup for what is measured: a server looks at those that others left beside its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_sys::cgroup::own_folder;

/// strace ends a little after the server that it traces.
const PATIENCE: Duration = Duration::from_secs(5);

/// A new cgroup that this program is in, with all that it starts, until it is dropped.
pub(super) struct OwnCgroup {
    folder: PathBuf,
    before: PathBuf,
}

impl OwnCgroup {
    /// Fails where servers do not get cgroups either.
    pub(super) fn enter() -> io::Result<Self> {
        let before = own_folder().map_err(io::Error::other)?;
        // Not `lastbyte-…`, which other servers take for one of their dead and clear.
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
        // An empty cgroup that stays costs nobody anything.
        _ = move_into(&self.before);
        while remove(&self.folder).is_err() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

fn move_into(folder: &Path) -> io::Result<()> {
    fs::write(folder.join("cgroup.procs"), std::process::id().to_string())
}

/// With all cgroups below, which killed servers leave behind.
fn remove(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(folder)
}
