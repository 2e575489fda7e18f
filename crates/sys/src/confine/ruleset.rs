//! Landlock: what can be written by path, which sockets reached, who signalled.
//!
//! A ruleset names its files by inode, so one is made where a spawner can hand it to its child and
//! kept for as long as the same paths lead to the same files.

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

use super::filter::Traffic;
use super::top::{self, Top};

/// What can be written, in Landlock's terms. Signals, abstract sockets and tracing never leave the
/// tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruleset {
    /// Folders; all below can be written.
    pub folders: Vec<CString>,
    /// Devices and folders of them: they can be written and controlled, not made or removed.
    pub devices: Vec<CString>,
    pub readable: Readable,
    pub traffic: Traffic,
}

/// What can be read beside what can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readable {
    Everything,
    /// All that is not in the folder of devices, and the memory that is shared there.
    NoDevice,
}

/// The newest version of which all rights are known here; a kernel with an older one gets less.
const KNOWN: ABI = ABI::V6;

impl Ruleset {
    fn create(&self, top: &Top) -> Result<OwnedFd, Errno> {
        let created = self.build(top).map_err(|error| errno_of(&error))?;
        Option::<OwnedFd>::from(created).ok_or(Errno::NOSYS)
    }

    fn build(&self, top: &Top) -> Result<RulesetCreated, RulesetError> {
        let ruleset = landlock::Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(self.handled())?
            .scope(Scope::from_all(KNOWN))?;
        let ruleset = match self.traffic {
            Traffic::Free => ruleset,
            Traffic::Barred => ruleset.handle_access(AccessNet::from_all(KNOWN))?,
        };
        let mut created = ruleset.create()?;
        for (path, access) in self.rules(top) {
            let file = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            // What has gone away since cannot be written anyway.
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

    fn rules<'a>(&'a self, top: &'a Top) -> impl Iterator<Item = (&'a CStr, BitFlags<AccessFs>)> {
        let device =
            AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev | AccessFs::ReadFile;
        let (folder, device) = (self.handled(), device & self.handled());
        let readable: &[CString] = match self.readable {
            Readable::Everything => &[],
            Readable::NoDevice => top.entries(),
        };
        let folders = self.folders.iter().map(move |path| (path.as_c_str(), folder));
        let devices = self.devices.iter().map(move |path| (path.as_c_str(), device));
        let shared = (self.readable == Readable::NoDevice).then_some(c"/dev/shm");
        let readable = readable.iter().map(CString::as_c_str).chain(shared);
        folders.chain(devices).chain(readable.map(|path| (path, AccessFs::ReadFile.into())))
    }

    /// Which files the paths lead to now. A ruleset holds on to its files, so a number is not
    /// given to another file as long as they are mounted; the mount is told by its own number.
    fn identity(&self, top: &mut Top) -> Identity {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
        let file = |path: &CString| {
            let file = statx(CWD, path.as_c_str(), AtFlags::empty(), wanted).ok()?;
            Some(top::identity(&file))
        };
        Identity { top: top.look(), folders: self.folders.iter().map(file).collect() }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Identity {
    /// Of the devices and of all that is at the top.
    top: u64,
    /// Device, inode and mount of each that is there.
    folders: Vec<Option<(u32, u32, u64, u64)>>,
}

/// The rulesets of one descriptor table, the last used first.
#[derive(Debug)]
pub(crate) struct Rulesets {
    top: Top,
    made: Vec<Made>,
}

#[derive(Debug)]
struct Made {
    of: Ruleset,
    identity: Identity,
    descriptor: OwnedFd,
}

/// Each is a descriptor and some pinned inodes; commands of one agent differ in few policies.
const MOST_KEPT: usize = 16;

impl Rulesets {
    pub(crate) fn new() -> Self {
        Self { top: Top::new("/"), made: Vec::new() }
    }

    pub(crate) fn get(&mut self, ruleset: &Ruleset) -> Result<BorrowedFd<'_>, Errno> {
        let identity = ruleset.identity(&mut self.top);
        let fits = |made: &Made| made.of == *ruleset && made.identity == identity;
        let made = match self.made.iter().position(fits) {
            Some(place) => self.made.remove(place),
            None => {
                let descriptor = ruleset.create(&self.top)?;
                Made { of: ruleset.clone(), identity, descriptor }
            }
        };
        self.made.truncate(MOST_KEPT - 1);
        self.made.insert(0, made);
        Ok(self.made[0].descriptor.as_fd())
    }
}

/// What the kernel said, somewhere in the chain of causes.
fn errno_of(error: &(dyn Error + 'static)) -> Errno {
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
        let folders = vec![CString::new(folder.as_os_str().as_bytes()).expect("no NUL")];
        Ruleset {
            folders,
            devices: vec![],
            readable: Readable::Everything,
            traffic: Traffic::Barred,
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
