//! The sandbox options of `run` and `start`.

use std::path::{PathBuf, absolute};

use clap::ValueEnum;
use lastbyte_engine::{Network, Sandbox, StartupFiles, Workspace};

use crate::{print, usage};

/// Set on each option: a heading of the whole struct would also apply to the options after it.
const HEADING: &str = "Sandbox options";

/// The policy of one command.
#[derive(Debug, clap::Args)]
pub(crate) struct SandboxArgs {
    /// Restrict what the command and everything it starts may do
    #[arg(long, value_name = "KIND", help_heading = HEADING)]
    sandbox: Option<Kind>,

    /// With --sandbox workspace-write: also allow writing below this directory; repeatable
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    writable: Vec<PathBuf>,

    /// With --sandbox workspace-write: keep this read-only, even inside a writable directory; repeatable
    #[arg(long, value_name = "DIR", help_heading = HEADING)]
    protect: Vec<PathBuf>,

    /// With --sandbox workspace-write: allow writing startup files in a home directory, such as .bashrc,
    /// .ssh and .gitconfig
    #[arg(long, help_heading = HEADING)]
    allow_startup_files: bool,

    /// With a sandbox: allow connections to other hosts, this host and unix sockets
    #[arg(long, help_heading = HEADING)]
    network: bool,
}

/// The kinds of policies, without their options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Kind {
    /// No sandbox
    #[default]
    FullAccess,
    /// Like full-access, but recorded as: the caller provides a sandbox
    External,
    /// Read everything, write nothing, no network
    ReadOnly,
    /// Like read-only, but may write below its directory, /tmp and $TMPDIR. The server's own directories
    /// look empty (without namespaces: read-only). Startup files missing in a writable home directory are
    /// created with a comment in them, to protect them
    WorkspaceWrite,
}

impl Kind {
    /// The policy of this kind without further options.
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
    /// `None` if no sandbox is given.
    pub(crate) fn sandbox(&self) -> Result<Option<Sandbox>, usage::Error> {
        self.check()?;
        let startup_files =
            if self.allow_startup_files { StartupFiles::Writable } else { StartupFiles::Protected };
        let network = if self.network { Network::On } else { Network::Off };
        Ok(match self.sandbox {
            None => None,
            Some(kind @ (Kind::FullAccess | Kind::External)) => Some(kind.sandbox()),
            Some(Kind::ReadOnly) => Some(Sandbox::ReadOnly { network }),
            Some(Kind::WorkspaceWrite) => Some(Sandbox::WorkspaceWrite(Workspace {
                roots: from_here(&self.writable)?,
                protect: from_here(&self.protect)?,
                startup_files,
                network,
                ..Workspace::default()
            })),
        })
    }

    /// Options that have no effect are refused.
    fn check(&self) -> Result<(), usage::Error> {
        let for_workspace = [
            ("--writable", !self.writable.is_empty()),
            ("--protect", !self.protect.is_empty()),
            ("--allow-startup-files", self.allow_startup_files),
        ];
        match (self.sandbox, for_workspace.into_iter().find(|(_, given)| *given)) {
            (Some(Kind::WorkspaceWrite), _) | (Some(Kind::ReadOnly), None) => Ok(()),
            (_, Some((option, _))) => Err(usage::Error::NeedsWorkspace { option }),
            (_, None) if self.network => Err(usage::Error::NetworkNeedsSandbox),
            (_, None) => Ok(()),
        }
    }
}

/// Warns that lastbyte does not sandbox the command.
pub(crate) fn warn_if_external(sandbox: Option<&Sandbox>) {
    if sandbox == Some(&Sandbox::External) {
        print::message("the sandbox is external: lastbyte does not restrict the command");
    }
}

/// As seen from the caller's directory.
fn from_here(directories: &[PathBuf]) -> Result<Vec<PathBuf>, usage::Error> {
    let whole = |directory: &PathBuf| {
        absolute(directory).map_err(|_| usage::Error::NoDirectory { given: directory.into() })
    };
    directories.iter().map(whole).collect()
}
