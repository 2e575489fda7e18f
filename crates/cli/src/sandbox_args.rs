//! What a command may do, as it stands on the command line.

use std::path::{PathBuf, absolute};

use clap::ValueEnum;
use lastbyte_engine::{Network, Sandbox, Workspace};

use crate::{tell, usage};

/// Given to each: a heading of the whole would be that of all options behind it, too.
const HEADING: &str = "The sandbox";

/// The policy of one command.
#[derive(Debug, clap::Args)]
pub(crate) struct SandboxArgs {
    /// What the command and all it starts may do
    #[arg(long, value_name = "KIND", help_heading = HEADING)]
    sandbox: Option<Kind>,

    /// With --sandbox workspace-write: let it write below this directory, too; can be repeated
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    writable: Vec<PathBuf>,

    /// With --sandbox workspace-write: leave this as it is, though it is in a directory that can be
    /// written; can be repeated
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    protect: Vec<PathBuf>,

    /// With a sandbox: let it reach other hosts, this one and unix sockets
    #[arg(long, help_heading = HEADING)]
    network: bool,
}

/// The kinds of policies, without what can be said of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Kind {
    /// No sandbox
    #[default]
    FullAccess,
    /// No sandbox: somebody else has put one up
    External,
    /// Read everything, write nothing, no network
    ReadOnly,
    /// As read-only, but write below its directory, /tmp and $TMPDIR
    WorkspaceWrite,
}

impl Kind {
    /// The policy of those who say no more.
    pub(crate) fn sandbox(self) -> Sandbox {
        match self {
            Self::FullAccess => Sandbox::FullAccess,
            Self::External => Sandbox::External,
            Self::ReadOnly => Sandbox::ReadOnly { network: Network::Off },
            Self::WorkspaceWrite => Sandbox::WorkspaceWrite(Workspace::default()),
        }
    }
}

impl SandboxArgs {
    /// `None` when nothing is said of it.
    pub(crate) fn sandbox(&self) -> Result<Option<Sandbox>, usage::Error> {
        self.check()?;
        let network = match self.network {
            true => Network::On,
            false => Network::Off,
        };
        Ok(match self.sandbox {
            None => None,
            Some(kind @ (Kind::FullAccess | Kind::External)) => Some(kind.sandbox()),
            Some(Kind::ReadOnly) => Some(Sandbox::ReadOnly { network }),
            Some(Kind::WorkspaceWrite) => Some(Sandbox::WorkspaceWrite(Workspace {
                roots: from_here(&self.writable)?,
                protect: from_here(&self.protect)?,
                network,
                ..Workspace::default()
            })),
        })
    }

    /// What is said must mean something.
    fn check(&self) -> Result<(), usage::Error> {
        let is_for_a_workspace = match (self.writable.first(), self.protect.first()) {
            (Some(_), _) => Some("--writable"),
            (None, Some(_)) => Some("--protect"),
            (None, None) => None,
        };
        match (self.sandbox, is_for_a_workspace) {
            (Some(Kind::WorkspaceWrite), _) => Ok(()),
            (_, Some(option)) => Err(usage::Error::NeedsWorkspace { option }),
            (Some(Kind::ReadOnly), None) => Ok(()),
            (None | Some(Kind::FullAccess | Kind::External), None) => match self.network {
                true => Err(usage::Error::NetworkNeedsSandbox),
                false => Ok(()),
            },
        }
    }
}

/// Says of a command that has no sandbox of ours why it has none.
pub(crate) fn tell_if_external(sandbox: Option<&Sandbox>) {
    if sandbox == Some(&Sandbox::External) {
        tell::line("the sandbox is external: nothing is kept from the command here");
    }
}

/// As seen from the caller's directory.
fn from_here(directories: &[PathBuf]) -> Result<Vec<PathBuf>, usage::Error> {
    let whole = |directory: &PathBuf| {
        absolute(directory).map_err(|_| usage::Error::NoDirectory { given: directory.into() })
    };
    directories.iter().map(whole).collect()
}
