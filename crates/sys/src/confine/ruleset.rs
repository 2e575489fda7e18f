//! Landlock: which paths can be written, which sockets reached, which processes signalled.
//!
//! A ruleset refers to its files by inode. It is created where a spawner can pass it to its child,
//! and kept as long as the same paths lead to the same files.

use std::error::Error;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, open, statx};
use rustix::io::Errno;

use super::filter::Network;
use super::mounts::FilePlace;
use super::root_entries::{self, RootEntries};
use crate::resolve::FileId;

/// What can be written, in Landlock's terms. Signals, abstract sockets and tracing are always
/// confined to the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruleset {
    /// Folders; everything below them can be written.
    pub folders: Vec<FilePlace>,
    /// Devices and folders of them: they can be written and controlled, but not created or removed.
    pub devices: Vec<CString>,
    pub readable: Readable,
    pub network: Network,
}

/// What can be read in addition to what can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readable {
    Everything,
    /// Everything outside the folder of devices, and `/dev/shm`.
    NoDevice,
}

/// The newest ABI whose rights are all known here. On a kernel with an older one, fewer rights are
/// enforced.
const KNOWN: ABI = ABI::V6;

impl Ruleset {
    fn create(&self, top: &RootEntries) -> Result<OwnedFd, Errno> {
        let folders = self.folders.iter().map(open_place).collect::<Result<Vec<_>, Errno>>()?;
        let created = self.build(folders, top).map_err(|error| to_errno(&error))?;
        Option::<OwnedFd>::from(created).ok_or(Errno::NOSYS)
    }

    fn build(
        &self,
        folders: Vec<OwnedFd>,
        top: &RootEntries,
    ) -> Result<RulesetCreated, RulesetError> {
        let ruleset = landlock::Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(self.handled())?
            .scope(Scope::from_all(KNOWN))?;
        let ruleset = match self.network {
            Network::On => ruleset,
            Network::Off => ruleset.handle_access(AccessNet::from_all(KNOWN))?,
        };
        let mut created = ruleset.create()?;
        for folder in folders {
            created = created.add_rule(PathBeneath::new(folder, self.handled()))?;
        }
        for (path, access) in self.rules(top) {
            let file = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            // A path that has disappeared cannot be written anyway.
            let Ok(file) = file else { continue };
            created = created.add_rule(PathBeneath::new(file, access))?;
        }
        Ok(created)
    }

    fn handled(&self) -> BitFlags<AccessFs> {
        let write = AccessFs::from_write(KNOWN);
        match self.readable {
            Readable::Everything => write,
            Readable::NoDevice => write | AccessFs::ReadFile,
        }
    }

    /// The rules for everything except the folders.
    fn rules<'a>(
        &'a self,
        top: &'a RootEntries,
    ) -> impl Iterator<Item = (&'a CStr, BitFlags<AccessFs>)> {
        let device =
            AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev | AccessFs::ReadFile;
        let device = device & self.handled();
        let devices = self.devices.iter().map(move |path| (path.as_c_str(), device));
        let readable = top.entries.iter().map(CString::as_c_str).chain([c"/dev/shm"]);
        let readable = readable.filter(|_| self.readable == Readable::NoDevice);
        devices.chain(readable.map(|path| (path, AccessFs::ReadFile.into())))
    }

    /// Which files the paths lead to now. A ruleset holds its files, so their inode numbers are not
    /// reused while they are mounted. The mount is identified by its own number.
    fn identity(&self, top: &mut RootEntries) -> Identity {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
        let file = |place: &FilePlace| {
            let file = statx(CWD, place.path.as_c_str(), AtFlags::empty(), wanted).ok()?;
            Some(root_entries::identity(&file))
        };
        (top.refresh(), self.folders.iter().map(file).collect())
    }
}

fn open_place(place: &FilePlace) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(place.path.as_c_str(), flags, Mode::empty())?;
    let found = statx(&file, c"", AtFlags::EMPTY_PATH, StatxFlags::INO)?;
    if FileId::from_statx(&found) == place.file { Ok(file) } else { Err(Errno::STALE) }
}

/// A number that changes when the devices or the entries of the root directory may have changed; and
/// device, inode and mount of each folder that exists.
type Identity = (u64, Vec<Option<(u32, u32, u64, u64)>>);

/// The rulesets of one descriptor table, most recently used first.
#[derive(Debug)]
pub(crate) struct Rulesets {
    top: RootEntries,
    made: Vec<Made>,
}

#[derive(Debug)]
struct Made {
    ruleset: Ruleset,
    identity: Identity,
    descriptor: OwnedFd,
}

/// Each costs a descriptor and some pinned inodes. The commands of one agent use few policies.
const MOST_KEPT: usize = 16;

impl Rulesets {
    pub(crate) fn new() -> Self {
        Self { top: RootEntries::new("/"), made: Vec::new() }
    }

    pub(crate) fn get(&mut self, ruleset: &Ruleset) -> Result<BorrowedFd<'_>, Errno> {
        let identity = ruleset.identity(&mut self.top);
        let fits = |made: &Made| made.ruleset == *ruleset && made.identity == identity;
        let made = match self.made.iter().position(fits) {
            Some(place) => self.made.remove(place),
            None => {
                let descriptor = ruleset.create(&self.top)?;
                Made { ruleset: ruleset.clone(), identity, descriptor }
            }
        };
        self.made.truncate(MOST_KEPT - 1);
        self.made.insert(0, made);
        Ok(self.made[0].descriptor.as_fd())
    }
}

/// The kernel's error, somewhere in the chain of causes.
fn to_errno(error: &(dyn Error + 'static)) -> Errno {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(errno) = error.downcast_ref::<io::Error>().and_then(Errno::from_io_error) {
            return errno;
        }
        next = error.source();
    }
    Errno::INVAL
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    fn of(folder: &std::path::Path) -> Ruleset {
        let path = CString::new(folder.as_os_str().as_bytes()).expect("no NUL");
        let file = crate::resolve::resolve(folder).expect("there").file;
        Ruleset {
            folders: vec![FilePlace { path, file }],
            devices: vec![],
            readable: Readable::Everything,
            network: Network::Off,
        }
    }

    #[test]
    fn a_ruleset_is_made_once_for_the_same_files() {
        let folder = tempfile::tempdir().expect("folder");
        let mut rulesets = Rulesets::new();
        let fd = |rulesets: &mut Rulesets| {
            use std::os::fd::AsRawFd;
            rulesets.get(&of(folder.path())).expect("landlock").as_raw_fd()
        };
        let first = fd(&mut rulesets);
        assert_eq!(fd(&mut rulesets), first);
        assert_eq!(rulesets.made.len(), 1);
    }

    #[test]
    fn a_folder_that_was_made_anew_is_another_file() {
        let parent = tempfile::tempdir().expect("folder");
        let folder = parent.path().join("root");
        let mut rulesets = Rulesets::new();
        for kept in 1..=3 {
            std::fs::create_dir(&folder).expect("made");
            rulesets.get(&of(&folder)).expect("landlock");
            std::fs::remove_dir(&folder).expect("removed");
            assert_eq!(rulesets.made.len(), kept);
        }
    }

    #[test]
    fn another_folder_under_the_same_name_is_refused() {
        let parent = tempfile::tempdir().expect("folder");
        let folder = parent.path().join("root");
        std::fs::create_dir(&folder).expect("made");
        let meant = of(&folder);
        std::fs::rename(&folder, parent.path().join("gone")).expect("renamed");
        std::os::unix::fs::symlink("/", &folder).expect("link");
        let refused = Rulesets::new().get(&meant).expect_err("a link");
        assert_eq!(refused, Errno::STALE);
        std::fs::remove_file(&folder).expect("removed");
        std::fs::create_dir(&folder).expect("made");
        assert_eq!(Rulesets::new().get(&meant).expect_err("another one"), Errno::STALE);
    }

    #[test]
    fn only_so_many_are_kept() {
        let parent = tempfile::tempdir().expect("folder");
        let mut rulesets = Rulesets::new();
        for number in 0..MOST_KEPT + 3 {
            let folder = parent.path().join(number.to_string());
            std::fs::create_dir(&folder).expect("made");
            rulesets.get(&of(&folder)).expect("landlock");
        }
        assert_eq!(rulesets.made.len(), MOST_KEPT);
    }
}
