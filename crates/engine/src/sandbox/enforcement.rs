//! The ways to enforce a policy, and the one that an engine uses.

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

use lastbyte_sys::Errno;
use lastbyte_sys::confine::try_out;
use lastbyte_sys::probe::landlock_abi;
use lastbyte_sys::spawn::{Failure, Mechanism, Step};
use lastbyte_sys::user::is_user_0;

use super::confine::bare_confinement;

/// How a policy is enforced, best first. Landlock and a filter of system calls are part of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforcement {
    /// By read-only mounts in a mount namespace, for a server that may make one.
    Mounts,
    /// The same in a user namespace, for a server without privileges.
    UserMounts,
    /// By Landlock and the filter alone. They cannot hide anything, nor tell whose modes and times
    /// are changed, so a command changes none.
    Landlock,
}

/// Which of them an engine uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EnforcementChoice {
    #[default]
    Best,
    /// This one; where it cannot be had, no confined command starts.
    Only(Enforcement),
}

/// What an enforcement needs and does not find here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    #[error(
        "Landlock version {needed} is needed and this kernel has {found}: it needs a newer kernel, \
         or `landlock` among the `lsm=` of its command line"
    )]
    Landlock { needed: u32, found: u32 },
    #[error("{step} is refused here")]
    Step {
        step: Step,
        #[source]
        errno: Errno,
    },
}

/// What was found out once.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) enforcement: Enforcement,
    pub(super) landlock: u32,
    /// Of the usual devices those that are here: folders and device files, no links.
    pub(super) devices: Vec<CString>,
    /// Whether this user's files include the disks.
    pub(super) reads_disks: bool,
}

impl Enforcement {
    pub const ALL: [Self; 3] = [Self::Mounts, Self::UserMounts, Self::Landlock];

    /// Tries it out with a child that does nothing else.
    pub fn probe(self, mechanism: Mechanism) -> Result<(), Missing> {
        self.find(mechanism).map(drop)
    }

    /// Landlock's version 1 keeps processes apart; version 3 is the first to see truncation, which
    /// read-only mounts do not need it for.
    fn landlock_needed(self) -> u32 {
        match self {
            Self::Mounts | Self::UserMounts => 1,
            Self::Landlock => 3,
        }
    }

    fn find(self, mechanism: Mechanism) -> Result<Found, Missing> {
        let (needed, found) = (self.landlock_needed(), landlock_abi().unwrap_or(0));
        if found < needed {
            return Err(Missing::Landlock { needed, found });
        }
        let (landlock, devices) = (found, devices());
        let found = Found { enforcement: self, landlock, devices, reads_disks: is_user_0() };
        match try_out(Arc::new(bare_confinement(&found)), mechanism) {
            Ok(()) => Ok(found),
            Err(Failure { step, errno }) => Err(Missing::Step { step, errno }),
        }
    }
}

impl Missing {
    /// A want of processes, memory or descriptors says nothing of what is permitted here, and must
    /// not make the sandbox a weaker one.
    fn next_best(self, next: Enforcement, mechanism: Mechanism) -> Result<Found, Self> {
        match self {
            Self::Step {
                errno: Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE, ..
            } => Err(self),
            Self::Step { .. } | Self::Landlock { .. } => next.find(mechanism),
        }
    }
}

impl EnforcementChoice {
    pub(super) fn find(self, mechanism: Mechanism) -> Result<Found, Missing> {
        match self {
            Self::Only(enforcement) => enforcement.find(mechanism),
            Self::Best => Enforcement::Mounts
                .find(mechanism)
                .or_else(|missing| missing.next_best(Enforcement::UserMounts, mechanism))
                .or_else(|missing| missing.next_best(Enforcement::Landlock, mechanism)),
        }
    }
}

/// Devices that hold nothing of anybody's, and terminals.
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
