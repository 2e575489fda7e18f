//! What a command and all its children may do.

use std::path::PathBuf;

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

/// Why a command was not started under a policy. It is never started without it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    #[error("the sandbox policy cannot be enforced here, so the command was not started")]
    NotEnforceable,
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
}
