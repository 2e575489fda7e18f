//! The ways to enforce a policy, and the one that an engine uses.

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

use lastbyte_sys::Errno;
use lastbyte_sys::confine::{Readable, probe};
use lastbyte_sys::probe::landlock_abi;
use lastbyte_sys::spawn::{Failure, Mechanism, Step};
use lastbyte_sys::user::is_user_0;

use super::confine::bare_confinement;

/// How a policy is enforced, best first. Each includes Landlock and a seccomp filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforcement {
    /// Read-only mounts in a mount namespace, for a server that may create one.
    Mounts,
    /// The same in a user namespace, for a server without privileges.
    UserMounts,
    /// Only Landlock and the filter. They cannot hide anything, and cannot tell whose modes and
    /// times are changed, so a command may change none.
    Landlock,
}

/// Which of them an engine uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EnforcementChoice {
    #[default]
    Best,
    /// Only this one. If it is not available, no confined command starts.
    Only(Enforcement),
}

/// What an enforcement needs that this machine lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error(
        "Landlock version {needed} is needed but this kernel has {found}: use a newer kernel, \
         or add `landlock` to `lsm=` on its command line"
    )]
    Landlock { needed: u32, found: u32 },
    #[error("{step} is refused here")]
    Step {
        step: Step,
        #[source]
        errno: Errno,
    },
}

/// The result of probing.
#[derive(Debug, Clone)]
pub(super) struct Probed {
    pub(super) enforcement: Enforcement,
    pub(super) landlock: u32,
    /// The usual devices that exist here: folders and device files, no links.
    pub(super) devices: Vec<CString>,
    pub(super) readable: Readable,
}

impl Enforcement {
    pub const ALL: [Self; 3] = [Self::Mounts, Self::UserMounts, Self::Landlock];

    /// Tries it on a child that does nothing else.
    pub fn probe(self, mechanism: Mechanism) -> Result<(), Missing> {
        self.find(mechanism).map(drop)
    }

    /// Version 1 keeps processes apart. Version 3 is the first to control truncation, which
    /// read-only mounts prevent by themselves.
    fn landlock_needed(self) -> u32 {
        match self {
            Self::Mounts | Self::UserMounts => 1,
            Self::Landlock => 3,
        }
    }

    fn find(self, mechanism: Mechanism) -> Result<Probed, Missing> {
        let (needed, found) = (self.landlock_needed(), landlock_abi().unwrap_or(0));
        if found < needed {
            return Err(Missing::Landlock { needed, found });
        }
        // User 0 can read a disk device, including everything hidden on it.
        let readable = if is_user_0() { Readable::NoDevice } else { Readable::Everything };
        let found = Probed { enforcement: self, landlock: found, devices: devices(), readable };
        match probe(Arc::new(bare_confinement(&found)), mechanism) {
            Ok(()) => Ok(found),
            Err(Failure { step, errno }) => Err(Missing::Step { step, errno }),
        }
    }
}

impl Missing {
    /// A shortage must not lead to a weaker sandbox.
    fn next_best(self, next: Enforcement, mechanism: Mechanism) -> Result<Probed, Self> {
        if self.is_shortage() { Err(self) } else { next.find(mechanism) }
    }

    /// Of processes, memory or descriptors: it says nothing about what is permitted here.
    pub fn is_shortage(self) -> bool {
        match self {
            Self::Step { errno, .. } => {
                matches!(errno, Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE)
            }
            Self::Landlock { .. } => false,
        }
    }
}

impl EnforcementChoice {
    pub(super) fn find(self, mechanism: Mechanism) -> Result<Probed, Missing> {
        match self {
            Self::Only(enforcement) => enforcement.find(mechanism),
            Self::Best => Enforcement::Mounts
                .find(mechanism)
                .or_else(|missing| missing.next_best(Enforcement::UserMounts, mechanism))
                .or_else(|missing| missing.next_best(Enforcement::Landlock, mechanism)),
        }
    }
}

/// Devices without anyone's data, and terminals.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];

fn devices() -> Vec<CString> {
    let there = |path: &&str| {
        Path::new(path).symlink_metadata().is_ok_and(|found| !found.file_type().is_symlink())
    };
    DEVICES.into_iter().filter(there).filter_map(|path| CString::new(path).ok()).collect()
}
