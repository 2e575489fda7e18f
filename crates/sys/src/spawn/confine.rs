//! The confinement steps that run in the child: raw calls only, as in `setup`.
//!
//! The child inherits the filter from its spawner. Calls that the filter otherwise refuses carry
//! the pass.

use std::cell::Cell;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::ptr;

use rustix::fs::Statx;
use rustix::io::Errno;

use super::request::{Failure, Step};
use super::setup::{call, set_limits};
use crate::confine::{Confinement, FilePlace, Mounts, Namespaces, RootUser, Rulesets};
use crate::raw::number;
use crate::resolve::FileId;

/// A confinement with everything its steps need.
pub(super) struct Confining<'a> {
    confinement: &'a Confinement,
    ruleset: BorrowedFd<'a>,
    /// Detached mounts and the places they go to. Only the child reads and writes these.
    kept: Vec<Cell<(usize, usize)>>,
    hidden: Vec<Cell<usize>>,
}

impl<'a> Confining<'a> {
    pub(super) fn new(
        confinement: &'a Confinement,
        rulesets: &'a mut Rulesets,
    ) -> Result<Self, Errno> {
        let mounts = confinement.mounts.as_ref();
        Ok(Self {
            confinement,
            ruleset: rulesets.get(&confinement.ruleset)?,
            kept: vec![Cell::default(); mounts.map_or(0, |mounts| mounts.kept.len())],
            hidden: vec![Cell::default(); mounts.map_or(0, |mounts| mounts.hidden.len())],
        })
    }

    /// The flags for clone.
    pub(super) fn flags(&self) -> u32 {
        self.confinement.mounts.as_ref().map_or(0, |mounts| mounts.namespaces.flags())
    }

    pub(super) fn pass(&self) -> u64 {
        self.confinement.filter.pass()
    }

    /// Changes the files the child sees. Its working directory still belongs to the old mounts.
    pub(super) fn apply_mounts(&self) -> Result<(), Failure> {
        let Some(mounts) = &self.confinement.mounts else { return Ok(()) };
        let mounter = Mounter { pass: self.pass() as usize };
        map_ids(&mounts.namespaces)?;
        // Mounts made here must not appear outside, nor the other way round. Copies made later
        // inherit this setting.
        mounter.set(Step::ReadOnly, (AT_FDCWD, c"/"), AT_RECURSIVE, &PRIVATE)?;
        for (kept, mount) in mounts.kept.iter().zip(&self.kept) {
            let from = open(Step::Kept, &kept.from)?;
            let to = if kept.to == kept.from { from } else { open(Step::Kept, &kept.to)? };
            mount.set((mounter.detach(Step::Kept, from)?, to));
        }
        for mount in &self.hidden {
            let empty = mounter.detach(Step::Hidden, open_path(Step::Hidden, &mounts.empty)?)?;
            mounter.set(Step::Hidden, (empty, c""), AT_EMPTY_PATH | AT_RECURSIVE, &READ_ONLY)?;
            mount.set(empty);
        }
        mounter.set(Step::ReadOnly, (AT_FDCWD, c"/"), AT_RECURSIVE, &READ_ONLY)?;
        for mount in &self.kept {
            let (mount, to) = mount.get();
            mounter.attach(Step::Kept, mount, to)?;
        }
        self.cover(mounts, mounter)
    }

    /// Mounts over parts of the kept folders, outer ones first.
    fn cover(&self, mounts: &Mounts, mounter: Mounter) -> Result<(), Failure> {
        for place in &mounts.immovable {
            let at = open(Step::Protected, place)?;
            mounter.attach(Step::Protected, mounter.detach(Step::Protected, at)?, at)?;
        }
        for place in &mounts.protected {
            let at = open(Step::Protected, place)?;
            let mount = mounter.detach(Step::Protected, at)?;
            mounter.set(Step::Protected, (mount, c""), AT_EMPTY_PATH | AT_RECURSIVE, &READ_ONLY)?;
            mounter.attach(Step::Protected, mount, at)?;
        }
        for (place, mount) in mounts.hidden.iter().zip(&self.hidden) {
            mounter.attach(Step::Hidden, mount.get(), open(Step::Hidden, place)?)?;
        }
        Ok(())
    }

    /// Enters the working directory as the mounts show it; `false` if it did not exist before.
    pub(super) fn enter_cwd(&self) -> Result<bool, Failure> {
        let Some(cwd) = &self.confinement.cwd else { return Ok(false) };
        call(Step::Cwd, libc::SYS_fchdir, [open(Step::Cwd, cwd)?])?;
        Ok(true)
    }

    /// Gives up every privilege for good and applies the ruleset.
    pub(super) fn drop_privileges(&self) -> Result<(), Failure> {
        let prctl = |arguments: [usize; 5]| call(Step::Privileges, libc::SYS_prctl, arguments);
        if self.confinement.root == RootUser::Disarm {
            prctl([libc::PR_SET_SECUREBITS as usize, NO_ROOT_CAPABILITIES, 0, 0, 0])?;
        }
        let capabilities = [0u32; 6];
        let header = [CAPABILITY_VERSION, 0];
        let (header, none) = (header.as_ptr() as usize, capabilities.as_ptr() as usize);
        call(Step::Privileges, libc::SYS_capset, [header, none])?;
        prctl([libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0])?;
        call(Step::Landlock, libc::SYS_landlock_restrict_self, [number(self.ruleset), 0]).map(drop)
    }

    /// Sets the limit that `confine::marked` checks for. The filter refuses message queues anyway.
    pub(super) fn mark(&self) -> Result<(), Failure> {
        set_limits(libc::RLIMIT_MSGQUEUE as usize, [0; 2])
    }
}

/// Maps the only user and group of the namespace. Without a map the child would be nobody.
fn map_ids(namespaces: &Namespaces) -> Result<(), Failure> {
    match namespaces {
        Namespaces::Mount => Ok(()),
        Namespaces::UserAndMount { uid_map, gid_map } => {
            // The kernel lets an unprivileged process map a group only after it has given up
            // setgroups(2).
            write(c"/proc/self/setgroups", b"deny")?;
            write(c"/proc/self/uid_map", uid_map)?;
            write(c"/proc/self/gid_map", gid_map)
        }
    }
}

fn write(path: &CStr, text: &[u8]) -> Result<(), Failure> {
    let step = Step::Identity;
    let flags = (libc::O_WRONLY | libc::O_CLOEXEC) as usize;
    let file = call(step, libc::SYS_openat, [AT_FDCWD, path.as_ptr() as usize, flags])?;
    call(step, libc::SYS_write, [file, text.as_ptr() as usize, text.len()])?;
    call(step, libc::SYS_close, [file]).map(drop)
}

/// Opens a path once and checks that it still leads to the same file. All descriptors are closed
/// before the program is executed.
fn open(step: Step, place: &FilePlace) -> Result<usize, Failure> {
    let file = open_path(step, &place.path)?;
    let mut found = MaybeUninit::<Statx>::zeroed();
    let (own, found_at) = (c"".as_ptr() as usize, found.as_mut_ptr() as usize);
    call(step, libc::SYS_statx, [file, own, AT_EMPTY_PATH, libc::STATX_INO as usize, found_at])?;
    // SAFETY: it is a struct of numbers, all zeroed or written by the call above.
    let found = unsafe { found.assume_init() };
    if FileId::from_statx(&found) == place.file {
        Ok(file)
    } else {
        Err(Failure { step, errno: Errno::STALE })
    }
}

fn open_path(step: Step, path: &CStr) -> Result<usize, Failure> {
    let flags = (libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC) as usize;
    call(step, libc::SYS_openat, [AT_FDCWD, path.as_ptr() as usize, flags])
}

/// Changes mounts. It passes the pass in an argument that these calls ignore.
#[derive(Clone, Copy)]
struct Mounter {
    pass: usize,
}

impl Mounter {
    /// Copies the mounts at an open file and below it. The copy is not attached anywhere.
    fn detach(self, step: Step, file: usize) -> Result<usize, Failure> {
        let flags = OPEN_TREE_CLONE | AT_RECURSIVE | AT_EMPTY_PATH | libc::O_CLOEXEC as usize;
        let arguments = [file, c"".as_ptr() as usize, flags, 0, 0, self.pass];
        call(step, libc::SYS_open_tree, arguments)
    }

    fn attach(self, step: Step, mount: usize, at: usize) -> Result<(), Failure> {
        let (own, both) =
            (c"".as_ptr() as usize, MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH);
        call(step, libc::SYS_move_mount, [mount, own, at, own, both, self.pass]).map(drop)
    }

    fn set(
        self,
        step: Step,
        (folder, path): (usize, &CStr),
        flags: usize,
        attributes: &MountAttributes,
    ) -> Result<(), Failure> {
        let place = ptr::from_ref(attributes) as usize;
        let size = size_of::<MountAttributes>();
        let arguments = [folder, path.as_ptr() as usize, flags, place, size, self.pass];
        call(step, libc::SYS_mount_setattr, arguments).map(drop)
    }
}

/// The kernel's `struct mount_attr`: what to set, what to clear, propagation, user namespace.
type MountAttributes = [u64; 4];
const PRIVATE: MountAttributes = [MOUNT_ATTR_NOSUID, 0, libc::MS_PRIVATE, 0];
const READ_ONLY: MountAttributes = [MOUNT_ATTR_RDONLY, 0, 0, 0];

const AT_FDCWD: usize = libc::AT_FDCWD as isize as usize;
const AT_RECURSIVE: usize = 0x8000;
const AT_EMPTY_PATH: usize = libc::AT_EMPTY_PATH as usize;
const OPEN_TREE_CLONE: usize = 1;
const MOVE_MOUNT_F_EMPTY_PATH: usize = 0x04;
const MOVE_MOUNT_T_EMPTY_PATH: usize = 0x40;
const MOUNT_ATTR_RDONLY: u64 = 1;
const MOUNT_ATTR_NOSUID: u64 = 2;

/// Neither exec nor a change of user gives user 0 capabilities, and none become ambient. Locked.
const NO_ROOT_CAPABILITIES: usize = 0xEF;
const CAPABILITY_VERSION: u32 = 0x2008_0522;
