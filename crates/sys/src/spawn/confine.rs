//! The child's own part in its confinement: raw calls only, as in `setup`.
//!
//! The filter it has been born with: it is the spawner's, and calls that it refuses to everybody
//! else show it a pass.

use std::cell::Cell;
use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::request::{Failure, Step};
use super::setup::{call, value_of};
use crate::confine::{Confinement, Mounts, Namespaces, Root};

/// A confinement with all that its steps need at hand.
pub(super) struct Confining<'a> {
    confinement: &'a Confinement,
    ruleset: BorrowedFd<'a>,
    /// Mounts on their way to their place: written and read by the child alone.
    kept: Vec<Cell<usize>>,
    hidden: Vec<Cell<usize>>,
}

impl<'a> Confining<'a> {
    pub(super) fn new(confinement: &'a Confinement, ruleset: BorrowedFd<'a>) -> Self {
        let (kept, hidden) = confinement
            .mounts
            .as_ref()
            .map_or((0, 0), |mounts| (mounts.kept.len(), mounts.hidden.len()));
        Self {
            confinement,
            ruleset,
            kept: vec![Cell::new(0); kept],
            hidden: vec![Cell::new(0); hidden],
        }
    }

    /// What clone has to be asked for.
    pub(super) fn flags(&self) -> u32 {
        self.confinement.mounts.as_ref().map_or(0, |mounts| mounts.namespaces.flags())
    }

    pub(super) fn pass(&self) -> u64 {
        self.confinement.filter.pass()
    }

    /// Changes what the child sees; its working directory is still one of the old mounts.
    pub(super) fn lay_mounts(&self) -> Result<(), Failure> {
        let Some(mounts) = &self.confinement.mounts else { return Ok(()) };
        let mounter = Mounter { pass: self.pass() as usize };
        be_oneself(&mounts.namespaces)?;
        // What is mounted here must not appear outside, nor the other way round.
        mounter.set(Step::ReadOnly, (AT_FDCWD, c"/"), AT_RECURSIVE, &PRIVATE)?;
        for (kept, mount) in mounts.kept.iter().zip(&self.kept) {
            mount.set(mounter.detach(Step::Kept, &kept.from)?);
        }
        for mount in &self.hidden {
            let empty = mounter.detach(Step::Hidden, &mounts.empty)?;
            mounter.set(Step::Hidden, (empty, c""), AT_EMPTY_PATH | AT_RECURSIVE, &READ_ONLY)?;
            mount.set(empty);
        }
        mounter.set(Step::ReadOnly, (AT_FDCWD, c"/"), AT_RECURSIVE, &READ_ONLY)?;
        for (kept, mount) in mounts.kept.iter().zip(&self.kept) {
            mounter.attach(Step::Kept, mount.get(), &kept.to)?;
        }
        self.cover(mounts, mounter)
    }

    /// What is laid over parts of what is kept, from the outer to the inner.
    fn cover(&self, mounts: &Mounts, mounter: Mounter) -> Result<(), Failure> {
        for path in &mounts.steadied {
            let mount = mounter.detach(Step::Protected, path)?;
            mounter.attach(Step::Protected, mount, path)?;
        }
        for path in &mounts.protected {
            let mount = mounter.detach(Step::Protected, path)?;
            mounter.set(Step::Protected, (mount, c""), AT_EMPTY_PATH | AT_RECURSIVE, &READ_ONLY)?;
            mounter.attach(Step::Protected, mount, path)?;
        }
        for (path, mount) in mounts.hidden.iter().zip(&self.hidden) {
            mounter.attach(Step::Hidden, mount.get(), path)?;
        }
        Ok(())
    }

    /// Gives up every privilege, for good, and is held to the ruleset from here on.
    pub(super) fn give_up(&self) -> Result<(), Failure> {
        let prctl = |arguments: [usize; 5]| call(Step::Privileges, libc::SYS_prctl, arguments);
        if self.confinement.root == Root::Disarm {
            prctl([libc::PR_SET_SECUREBITS as usize, USER_0_IS_NOBODY, 0, 0, 0])?;
        }
        let capabilities = [0u32; 6];
        let header = [CAPABILITY_VERSION, 0];
        let (header, none) = (header.as_ptr() as usize, capabilities.as_ptr() as usize);
        call(Step::Privileges, libc::SYS_capset, [header, none])?;
        prctl([libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0])?;
        let ruleset = self.ruleset.as_raw_fd().unsigned_abs() as usize;
        call(Step::Landlock, libc::SYS_landlock_restrict_self, [ruleset, 0])
    }

    /// Leaves the mark that `confine::marked` looks for. No queue can be made anyway.
    pub(super) fn mark(&self) -> Result<(), Failure> {
        let (which, limits) = (libc::RLIMIT_MSGQUEUE as usize, [0u64; 2]);
        call(Step::Limits, libc::SYS_prlimit64, [0, which, limits.as_ptr() as usize, 0])
    }
}

/// Maps the one user and group that there are; without a map the child is nobody.
fn be_oneself(namespaces: &Namespaces) -> Result<(), Failure> {
    match namespaces {
        Namespaces::Mount => Ok(()),
        Namespaces::UserAndMount { uid_map, gid_map } => {
            // A group may only be mapped by who can no longer shed groups.
            write(c"/proc/self/setgroups", b"deny")?;
            write(c"/proc/self/uid_map", uid_map)?;
            write(c"/proc/self/gid_map", gid_map)
        }
    }
}

fn write(path: &CStr, text: &[u8]) -> Result<(), Failure> {
    let step = Step::Identity;
    let flags = (libc::O_WRONLY | libc::O_CLOEXEC) as usize;
    let file = value_of(step, libc::SYS_openat, [AT_FDCWD, path.as_ptr() as usize, flags])?;
    call(step, libc::SYS_write, [file, text.as_ptr() as usize, text.len()])?;
    call(step, libc::SYS_close, [file])
}

/// Changes mounts. The pass stands where the kernel looks for no argument.
#[derive(Clone, Copy)]
struct Mounter {
    pass: usize,
}

impl Mounter {
    /// A copy of what is mounted at a path and below, not mounted anywhere.
    fn detach(self, step: Step, path: &CStr) -> Result<usize, Failure> {
        let flags = OPEN_TREE_CLONE | AT_RECURSIVE | AT_SYMLINK_NOFOLLOW | libc::O_CLOEXEC as usize;
        let arguments = [AT_FDCWD, path.as_ptr() as usize, flags, 0, 0, self.pass];
        value_of(step, libc::SYS_open_tree, arguments)
    }

    fn attach(self, step: Step, mount: usize, path: &CStr) -> Result<(), Failure> {
        let (own, path) = (c"".as_ptr() as usize, path.as_ptr() as usize);
        let arguments = [mount, own, AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH, self.pass];
        call(step, libc::SYS_move_mount, arguments)
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
        call(step, libc::SYS_mount_setattr, arguments)
    }
}

/// The kernel's `struct mount_attr`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

const PRIVATE: MountAttributes =
    MountAttributes { set: 0, clear: 0, propagation: libc::MS_PRIVATE, user_namespace: 0 };

const READ_ONLY: MountAttributes =
    MountAttributes { set: MOUNT_ATTR_RDONLY, clear: 0, propagation: 0, user_namespace: 0 };

const AT_FDCWD: usize = libc::AT_FDCWD as isize as usize;
const AT_RECURSIVE: usize = 0x8000;
const AT_EMPTY_PATH: usize = libc::AT_EMPTY_PATH as usize;
const AT_SYMLINK_NOFOLLOW: usize = libc::AT_SYMLINK_NOFOLLOW as usize;
const OPEN_TREE_CLONE: usize = 1;
const MOVE_MOUNT_F_EMPTY_PATH: usize = 4;
const MOUNT_ATTR_RDONLY: u64 = 1;

/// Neither exec nor a change of user gives user 0 capabilities, and none become ambient; locked.
const USER_0_IS_NOBODY: usize = 0xEF;
const CAPABILITY_VERSION: u32 = 0x2008_0522;
