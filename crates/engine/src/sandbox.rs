//! What a command and all its descendants may do.
//!
//! `plan` turns a policy into lists of paths, with `root_record` (directories that commands could
//! write) and `startup_files` (files of a home that programs run). `enforcement` finds out what this
//! machine can enforce, `confine` expresses a plan in the kernel's terms, `error` says why nothing
//! is started.

mod confine;
mod enforcement;
mod error;
mod plan;
#[cfg(test)]
mod plan_tests;
mod root_record;
mod startup_files;

use std::path::PathBuf;

use lastbyte_sys::Signal;

pub(crate) use confine::{Confined, Sandboxes};
pub use enforcement::{Enforcement, EnforcementChoice, Missing};
pub use error::{Needs, SandboxError};
pub use lastbyte_sys::confine::{Network, marked as confined};

use crate::process::ending::Status;

/// A policy as given by the caller. It applies to the whole tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Sandbox {
    /// Whatever the server's user may do.
    #[default]
    FullAccess,
    /// The same, because an outer sandbox is already in place.
    External,
    /// Everything can be read. Nothing can be written except `/dev/null`, terminals and the like.
    ReadOnly { network: Network },
    /// As `ReadOnly`, but the workspace can be written.
    WorkspaceWrite(Workspace),
}

/// What can be written, and which parts of it cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Whether the working directory is a root.
    pub cwd: bool,
    /// Absolute paths; everything below them can be written.
    pub roots: Vec<PathBuf>,
    /// Whether `/tmp` is a root.
    pub slash_tmp: bool,
    /// Whether the folder that `TMPDIR` names is a root.
    pub tmpdir: bool,
    /// Absolute paths inside a root that cannot be written.
    pub protect: Vec<PathBuf>,
    pub startup_files: StartupFiles,
    pub network: Network,
}

/// Whether a command may write the files in a home folder from which a shell, git, ssh or a desktop
/// runs commands. A root that is such a file, or inside one, is always writable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StartupFiles {
    #[default]
    Protected,
    Writable,
}

impl Default for Workspace {
    fn default() -> Self {
        Self {
            cwd: true,
            roots: Vec::new(),
            slash_tmp: true,
            tmpdir: true,
            protect: Vec::new(),
            startup_files: StartupFiles::Protected,
            network: Network::Off,
        }
    }
}

impl Sandbox {
    /// Whether the policy restricts the command at all.
    pub fn confines(&self) -> bool {
        match self {
            Self::FullAccess | Self::External => false,
            Self::ReadOnly { .. } | Self::WorkspaceWrite(_) => true,
        }
    }

    /// Whether the policy caused this status, as far as a status can tell. A program that makes
    /// system calls by the numbers of another architecture is killed by SIGSYS, which nobody sends
    /// by accident. Every other refusal is an error number that the program itself handles.
    pub fn denied(&self, status: Status) -> bool {
        match status {
            Status::Signalled { signal, .. } => self.confines() && signal == Signal::SYS,
            Status::Exited(_) | Status::Lost(_) => false,
        }
    }
}
