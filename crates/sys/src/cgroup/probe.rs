//! Probes whether cgroups work by creating one and starting a child in it.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::locate::{NoFolder, own_folder};
use super::parent::ParentCgroup;
use crate::spawn::{open_cgroup, try_clone};

/// Why trees cannot have cgroups here.
#[derive(Debug, thiserror::Error)]
pub enum NoCgroup {
    #[error("cannot find this program's cgroup")]
    Folder(#[from] NoFolder),
    #[error("cannot create a cgroup below {folder}", folder = folder.display())]
    Make { folder: PathBuf, source: io::Error },
    /// Before Linux 5.14.
    #[error("this kernel cannot kill a cgroup")]
    NoKill,
    #[error("cannot start a process in its own cgroup")]
    Enter(#[source] Errno),
}

/// Checks that cgroups can be created below our own cgroup and children started in them, and returns
/// that folder.
pub fn probe() -> Result<PathBuf, NoCgroup> {
    probed_parent().and_then(|_| Ok(own_folder()?))
}

/// A new parent below our own cgroup, in which a child was started to see that it can be. The cgroup
/// with the number 0 was for that.
pub fn probed_parent() -> Result<ParentCgroup, NoCgroup> {
    let folder = own_folder()?;
    let parent = ParentCgroup::make(&folder).map_err(cannot_make(&folder))?;
    let cgroup = parent.cgroup(0).map_err(cannot_make(parent.folder()))?;
    let outcome = if cgroup.folder().join("cgroup.kill").exists() {
        let opened = open_cgroup(cgroup.folder());
        let entered = opened.and_then(|cgroup| try_clone(0, Some(cgroup.as_fd())));
        entered.map(drop).map_err(NoCgroup::Enter)
    } else {
        Err(NoCgroup::NoKill)
    };
    // The child has been reaped, so the cgroup is empty. If it stays, the next start removes it.
    _ = cgroup.remove();
    outcome.map(|()| parent)
}

fn cannot_make(folder: &Path) -> impl Fn(io::Error) -> NoCgroup {
    move |source| NoCgroup::Make { folder: folder.to_owned(), source }
}
