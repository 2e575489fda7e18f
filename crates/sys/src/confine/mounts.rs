//! What a command sees of the files, as mounts in a namespace of its own.

use std::ffi::CString;

use rustix::process::{getegid, geteuid};

/// Everything can be read and no file written, but for what is listed. Devices are no files here:
/// the ruleset sees to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounts {
    pub namespaces: Namespaces,
    /// Stay as they are, with all that is mounted below.
    pub kept: Vec<Kept>,
    /// Folders inside a kept one that cannot be renamed or removed, outer ones first.
    pub steadied: Vec<CString>,
    /// What of the kept cannot be written.
    pub protected: Vec<CString>,
    /// Folders that look empty.
    pub hidden: Vec<CString>,
    /// The folder that hidden ones look like.
    pub empty: CString,
}

/// A folder that can be written, and where it is seen: no symbolic links, none inside another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub from: CString,
    pub to: CString,
}

/// Which namespaces the mounts are made in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespaces {
    /// A mount namespace, for who has the right to make one.
    Mount,
    /// In a user namespace, in which everybody has that right.
    UserAndMount { uid_map: Vec<u8>, gid_map: Vec<u8> },
}

impl Namespaces {
    /// A user namespace in which this program's user and group are themselves, and nobody else
    /// is anybody.
    pub fn of_own_user() -> Self {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        Self::UserAndMount {
            uid_map: format!("{user} {user} 1").into_bytes(),
            gid_map: format!("{group} {group} 1").into_bytes(),
        }
    }

    /// What clone is asked for.
    pub(crate) fn flags(&self) -> u32 {
        let flags = match self {
            Self::Mount => libc::CLONE_NEWNS,
            Self::UserAndMount { .. } => libc::CLONE_NEWNS | libc::CLONE_NEWUSER,
        };
        flags.cast_unsigned()
    }
}
