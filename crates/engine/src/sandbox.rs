//! What a command and all its children may do.

mod confine;
mod enforcement;
mod error;
mod plan;
#[cfg(test)]
mod plan_tests;

use std::path::PathBuf;

use lastbyte_sys::Signal;

pub use confine::confined;
pub(crate) use confine::{Confined, Sandboxes};
pub use enforcement::{Enforcement, EnforcementChoice, Missing};
pub use error::{Needs, SandboxError};

use crate::ending::Status;

/// A policy, as a caller says it. It holds for the whole tree, however it spreads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Sandbox {
    /// Whatever the server's user may do.
    #[default]
    FullAccess,
    /// The same: somebody outside has put up a sandbox already.
    External,
    /// Everything can be read; nothing can be written but `/dev/null`, terminals and the like.
    ReadOnly { network: Network },
    /// As `ReadOnly`, but the workspace can be written.
    WorkspaceWrite(Workspace),
}

/// What can be written, and what of it cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Whether the command's own directory is a root.
    pub cwd: bool,
    /// Absolute paths; all below them can be written.
    pub roots: Vec<PathBuf>,
    /// Whether `/tmp` is a root.
    pub slash_tmp: bool,
    /// Whether the folder that `TMPDIR` names is one.
    pub tmpdir: bool,
    /// Absolute paths inside a root that stay as they are.
    pub protect: Vec<PathBuf>,
    pub network: Network,
}

/// Whether a command can reach anybody: other hosts, this one, unix sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    #[default]
    Off,
    On,
}

impl Default for Workspace {
    fn default() -> Self {
        Self {
            cwd: true,
            roots: Vec::new(),
            slash_tmp: true,
            tmpdir: true,
            protect: Vec::new(),
            network: Network::Off,
        }
    }
}

impl Sandbox {
    /// Whether anything is kept from the command.
    pub fn confines(&self) -> bool {
        match self {
            Self::FullAccess | Self::External => false,
            Self::ReadOnly { .. } | Self::WorkspaceWrite(_) => true,
        }
    }

    /// Whether this status is the policy's doing, as far as a status can tell: a program that calls
    /// the kernel by the numbers of another processor is killed by SIGSYS, which nobody sends by
    /// accident. Whatever else is refused is an error number to the program, and its own affair.
    pub fn denied(&self, status: Status) -> bool {
        match status {
            Status::Signalled { signal, .. } => self.confines() && signal == Signal::SYS,
            Status::Exited(_) | Status::Lost(_) => false,
        }
    }
}
