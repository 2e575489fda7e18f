//! Whether leaves can be had, found out by having one.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::branch::Branch;
use super::locate::{NoFolder, own_folder};
use crate::spawn::clone_into;

/// Why no tree can have a leaf here.
#[derive(Debug, thiserror::Error)]
pub enum NoLeaf {
    #[error("our own cgroup cannot be found")]
    Folder(#[from] NoFolder),
    #[error("cannot make a cgroup below {folder}", folder = folder.display())]
    Make {
        folder: PathBuf,
        #[source]
        source: io::Error,
    },
    /// Before Linux 5.14.
    #[error("this kernel cannot kill a cgroup")]
    NoKill,
    #[error("cannot start a process in a cgroup of its own")]
    Enter(#[source] Errno),
}

/// Finds out whether leaves can be made below our own cgroup and children started in them, and
/// returns that folder.
pub fn probe() -> Result<PathBuf, NoLeaf> {
    let folder = own_folder()?;
    let branch = Branch::make(&folder).map_err(cannot_make(&folder))?;
    let leaf = branch.leaf(0).map_err(cannot_make(branch.folder()))?;
    let outcome = match leaf.folder().join("cgroup.kill").exists() {
        true => enter(leaf.folder()).map_err(NoLeaf::Enter),
        false => Err(NoLeaf::NoKill),
    };
    // The child has been reaped, so nobody lives in it; if it stays, the next start removes it.
    _ = leaf.remove();
    outcome.map(|()| folder)
}

fn enter(folder: &Path) -> Result<(), Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let leaf = rustix::fs::open(folder, flags, Mode::empty())?;
    clone_into(&leaf)
}

fn cannot_make(folder: &Path) -> impl Fn(io::Error) -> NoLeaf {
    move |source| NoLeaf::Make { folder: folder.to_owned(), source }
}
