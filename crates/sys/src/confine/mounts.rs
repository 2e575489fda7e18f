//! The files a command sees, as mounts in its own namespace.

use std::ffi::CString;

use rustix::process::{getegid, geteuid};

use crate::resolve::FileId;

/// Makes everything readable and nothing writable, except what is listed. Device files are not
/// affected: the ruleset controls them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mounts {
    pub namespaces: Namespaces,
    /// Stay as they are, with everything mounted below them.
    pub kept: Vec<KeptFolder>,
    /// Folders inside a kept one that cannot be renamed or removed, outer ones first.
    pub immovable: Vec<FilePlace>,
    /// Parts of the kept folders that cannot be written.
    pub protected: Vec<FilePlace>,
    /// Folders that appear empty.
    pub hidden: Vec<FilePlace>,
    /// The empty folder that is mounted over hidden ones.
    pub empty: CString,
}

/// A writable folder, and where it appears: no symbolic links, none inside another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptFolder {
    pub from: FilePlace,
    pub to: FilePlace,
}

/// A file or folder as a path led to it. To act on it later, open the path once, check that it is
/// still the same file, and act on that descriptor: another command may have replaced it meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePlace {
    pub path: CString,
    pub file: FileId,
}

/// Which namespaces the mounts are made in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Namespaces {
    /// A mount namespace, if this program has the right to create one.
    Mount,
    /// Also a user namespace, in which everybody has that right.
    UserAndMount { uid_map: Vec<u8>, gid_map: Vec<u8> },
}

impl Namespaces {
    /// A user namespace that maps only this program's user and group, each to itself.
    pub fn for_own_user() -> Self {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        Self::UserAndMount {
            uid_map: format!("{user} {user} 1").into_bytes(),
            gid_map: format!("{group} {group} 1").into_bytes(),
        }
    }

    /// The flags for clone.
    pub(crate) fn flags(&self) -> u32 {
        let flags = match self {
            Self::Mount => libc::CLONE_NEWNS,
            Self::UserAndMount { .. } => libc::CLONE_NEWNS | libc::CLONE_NEWUSER,
        };
        flags.cast_unsigned()
    }
}
