//! Landlock: what can be written by path, which sockets reached, who signalled.
//!
//! A ruleset names its files by inode, so one is made where a spawner can hand it to its child and
//! kept for as long as the same paths lead to the same files.

use std::error::Error;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, open, statx};
use rustix::io::Errno;

use super::filter::Traffic;

/// What can be written, in Landlock's terms. Signals, abstract sockets and tracing never leave the
/// tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruleset {
    /// Folders; all below can be written.
    pub folders: Vec<CString>,
    /// Devices and folders of them: they can be written and controlled, not made or removed.
    pub devices: Vec<CString>,
    /// What else can be read, or everything.
    pub readable: Option<Vec<CString>>,
    pub traffic: Traffic,
}

/// The newest version of which all rights are known here; a kernel with an older one gets less.
const KNOWN: ABI = ABI::V6;

impl Ruleset {
    fn create(&self) -> Result<OwnedFd, Errno> {
        let created = self.build().map_err(|error| errno_of(&error))?;
        Option::<OwnedFd>::from(created).ok_or(Errno::NOSYS)
    }

    fn build(&self) -> Result<RulesetCreated, RulesetError> {
        let ruleset = landlock::Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(self.handled())?
            .scope(Scope::from_all(KNOWN))?;
        let ruleset = match self.traffic {
            Traffic::Free => ruleset,
            Traffic::Barred => ruleset.handle_access(AccessNet::from_all(KNOWN))?,
        };
        let mut created = ruleset.create()?;
        for (path, access) in self.rules() {
            let file = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
            // What has gone away since cannot be written anyway.
            let Ok(file) = file else { continue };
            created = created.add_rule(PathBeneath::new(file, access))?;
        }
        Ok(created)
    }

    fn handled(&self) -> BitFlags<AccessFs> {
        let write = AccessFs::from_write(KNOWN);
        if self.readable.is_some() { write | AccessFs::ReadFile } else { write }
    }

    fn rules(&self) -> impl Iterator<Item = (&CString, BitFlags<AccessFs>)> {
        let device =
            AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev | AccessFs::ReadFile;
        let (folder, device) = (self.handled(), device & self.handled());
        let readable = self.readable.iter().flatten();
        let folders = self.folders.iter().map(move |path| (path, folder));
        let devices = self.devices.iter().map(move |path| (path, device));
        folders.chain(devices).chain(readable.map(|path| (path, AccessFs::ReadFile.into())))
    }

    /// Which files the paths lead to now. A ruleset holds on to its files, so a number is not
    /// given to another file as long as they are mounted; the mount is told by its own number.
    fn identity(&self) -> Vec<Identity> {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
        let identity = |path: &CString| {
            let file = statx(CWD, path.as_c_str(), AtFlags::empty(), wanted).ok()?;
            Some((file.stx_dev_major, file.stx_dev_minor, file.stx_ino, file.stx_mnt_id))
        };
        self.rules().map(|(path, _)| identity(path)).collect()
    }
}

/// Device, inode and mount of a file that is there.
type Identity = Option<(u32, u32, u64, u64)>;

/// The rulesets of one descriptor table, the last used first.
#[derive(Debug, Default)]
pub(crate) struct Rulesets(Vec<Made>);

#[derive(Debug)]
struct Made {
    of: Ruleset,
    identity: Vec<Identity>,
    descriptor: OwnedFd,
}

/// Each is a descriptor and some pinned inodes; commands of one agent differ in few policies.
const MOST_KEPT: usize = 16;

impl Rulesets {
    pub(crate) fn get(&mut self, ruleset: &Ruleset) -> Result<BorrowedFd<'_>, Errno> {
        let identity = ruleset.identity();
        let fits = |made: &Made| made.of == *ruleset && made.identity == identity;
        let made = match self.0.iter().position(fits) {
            Some(place) => self.0.remove(place),
            None => Made { of: ruleset.clone(), descriptor: ruleset.create()?, identity },
        };
        self.0.truncate(MOST_KEPT - 1);
        self.0.insert(0, made);
        Ok(self.0[0].descriptor.as_fd())
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
        Ruleset { folders, devices: vec![], readable: None, traffic: Traffic::Barred }
    }

    #[test]
    fn a_ruleset_is_made_once_for_the_same_files() {
        let folder = tempfile::tempdir().expect("folder");
        let mut rulesets = Rulesets::default();
        let fd = |rulesets: &mut Rulesets| {
            use std::os::fd::AsRawFd;
            rulesets.get(&of(folder.path())).expect("landlock").as_raw_fd()
        };
        let first = fd(&mut rulesets);
        assert_eq!(fd(&mut rulesets), first);
        assert_eq!(rulesets.0.len(), 1);
    }

    #[test]
    fn a_folder_that_was_made_anew_is_another_file() {
        let parent = tempfile::tempdir().expect("folder");
        let folder = parent.path().join("root");
        let mut rulesets = Rulesets::default();
        for kept in 1..=3 {
            std::fs::create_dir(&folder).expect("made");
            rulesets.get(&of(&folder)).expect("landlock");
            std::fs::remove_dir(&folder).expect("removed");
            assert_eq!(rulesets.0.len(), kept);
        }
    }

    #[test]
    fn only_so_many_are_kept() {
        let parent = tempfile::tempdir().expect("folder");
        let mut rulesets = Rulesets::default();
        for number in 0..MOST_KEPT + 3 {
            let folder = parent.path().join(number.to_string());
            std::fs::create_dir(&folder).expect("made");
            rulesets.get(&of(&folder)).expect("landlock");
        }
        assert_eq!(rulesets.0.len(), MOST_KEPT);
    }
}
