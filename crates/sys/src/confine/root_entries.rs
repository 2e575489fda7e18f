//! The entries of the root directory, listed again only when something there has changed.

use std::ffi::CString;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use rustix::event::PollFlags;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags, open, statx};

use crate::pipe::poll_now;
use crate::resolve::to_time;

/// The entries except the folder of devices, as one thread last listed them.
#[derive(Debug)]
pub(super) struct RootEntries {
    root: PathBuf,
    /// Polls when something is mounted or unmounted; `None` without `/proc`.
    mounts: Option<OwnedFd>,
    folders: Option<[FolderStamp; 2]>,
    /// Excludes symbolic links: a link leads to another entry, or to something that must not be
    /// read.
    pub(super) entries: Vec<CString>,
    generation: u64,
}

/// File, mount, and the time of the folder's last change. Adding, removing or replacing an entry
/// changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FolderStamp {
    file: (u32, u32, u64, u64),
    /// `None` if it was before 1970.
    changed: Option<SystemTime>,
}

/// File system timestamps may advance in timer ticks, so a folder that changed just now can change
/// again without a new timestamp.
const TICK: Duration = Duration::from_secs(1);

impl RootEntries {
    pub(super) fn new(root: impl Into<PathBuf>) -> Self {
        let mounts =
            open("/proc/thread-self/mountinfo", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let (root, mounts) = (root.into(), mounts.ok());
        Self { root, mounts, folders: None, entries: Vec::new(), generation: 0 }
    }

    /// Lists the entries again if necessary. The returned number changes when the same names may
    /// refer to other files now, here or in the folder of devices.
    pub(super) fn refresh(&mut self) -> u64 {
        // Check both every time: polling the mounts clears the event.
        let mounted = self.was_mounted();
        let folders = self.stamps();
        let steady = folders.as_ref().is_some_and(|all| all.iter().all(FolderStamp::is_steady));
        if mounted || !steady || folders != self.folders {
            self.entries = self.list();
            self.folders = folders;
            self.generation += 1;
        }
        self.generation
    }

    fn was_mounted(&self) -> bool {
        let Some(mounts) = &self.mounts else { return true };
        !poll_now(mounts, PollFlags::PRI).is_ok_and(|events| events.is_empty())
    }

    fn stamps(&self) -> Option<[FolderStamp; 2]> {
        Some([FolderStamp::read(&self.root)?, FolderStamp::read(&self.root.join(DEVICES))?])
    }

    fn list(&self) -> Vec<CString> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let plain = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
        let others = plain.filter(|entry| entry.file_name() != DEVICES);
        others
            .filter_map(|entry| CString::new(entry.path().into_os_string().into_vec()).ok())
            .collect()
    }
}

const DEVICES: &str = "dev";

impl FolderStamp {
    fn read(folder: &std::path::Path) -> Option<Self> {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID | StatxFlags::CTIME;
        let folder = CString::new(folder.as_os_str().as_bytes()).ok()?;
        let found = statx(CWD, folder.as_c_str(), AtFlags::empty(), wanted).ok()?;
        Some(Self { file: identity(&found), changed: to_time(found.stx_ctime) })
    }

    fn is_steady(&self) -> bool {
        // A time in the future counts as now.
        let age = self.changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
        age.is_some_and(|age| age > TICK)
    }
}

/// Device, inode and mount.
pub(super) fn identity(found: &Statx) -> (u32, u32, u64, u64) {
    (found.stx_dev_major, found.stx_dev_minor, found.stx_ino, found.stx_mnt_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_at_the_top_is_seen_at_once() {
        let root = tempfile::tempdir().expect("folder");
        let folder = |name: &str| fs::create_dir(root.path().join(name)).expect("made");
        let names = |top: &mut RootEntries| {
            top.refresh();
            let mut names: Vec<_> = top.entries.iter().map(|path| path.to_bytes()).collect();
            names.sort();
            names.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect::<Vec<_>>()
        };
        let path = |name: &str| root.path().join(name).display().to_string();
        folder("dev");
        folder("usr");
        std::os::unix::fs::symlink("dev", root.path().join("link")).expect("link");
        let mut top = RootEntries::new(root.path());
        assert_eq!(names(&mut top), [path("usr")]);
        folder("mnt");
        assert_eq!(names(&mut top), [path("mnt"), path("usr")]);
        fs::remove_dir(root.path().join("usr")).expect("removed");
        assert_eq!(names(&mut top), [path("mnt")]);
    }

    #[test]
    fn where_nothing_changes_there_is_one_look() {
        let mut top = RootEntries::new("/");
        let steady = |top: &mut RootEntries| top.refresh() == top.refresh();
        assert!((0..1000).any(|_| steady(&mut top)), "{top:?}");
    }

    /// Runs in a mount namespace of its own thread. A user who may not create one cannot mount
    /// anything that this would have to notice.
    #[test]
    fn what_is_mounted_is_noticed() {
        use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change, unmount};
        use rustix::thread::{CapabilitySet, UnshareFlags, capabilities, unshare_unsafe};

        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().to_owned();
        let watch = move || {
            // SAFETY: this is a thread of this test, which uses only absolute paths.
            let unshared = unsafe { unshare_unsafe(UnshareFlags::FS | UnshareFlags::NEWNS) };
            if unshared.is_err() {
                let own = capabilities(None).expect("known").effective;
                assert!(!own.contains(CapabilitySet::SYS_ADMIN), "{unshared:?}");
                return;
            }
            let own = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
            mount_change("/", own).expect("a namespace of its own");
            let top = RootEntries::new("/");
            assert!(!top.was_mounted());
            mount("none", &path, "tmpfs", MountFlags::empty(), None).expect("mounted");
            assert!(top.was_mounted());
            assert!(!top.was_mounted(), "told once");
            unmount(&path, rustix::mount::UnmountFlags::empty()).expect("unmounted");
            assert!(top.was_mounted());
        };
        std::thread::spawn(watch).join().expect("no failure");
    }
}
