//! What is asked of a spawn and what comes back.

use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;

use crate::Child;
use crate::confine::Confinement;
use crate::pty::WindowSize;

/// All that a child needs, ready to be used between clone and exec, where nothing can be allocated.
#[derive(Debug, Clone)]
pub struct Request {
    /// Paths to try in order, as `execvp` does for each folder of `PATH`.
    pub programs: Vec<CString>,
    pub argv: Vec<CString>,
    /// `NAME=value` entries: the whole environment.
    pub env: Vec<CString>,
    pub cwd: CString,
    pub stdin: Stdin,
    pub output: Output,
    /// The cgroup leaf that the child is born in; its folder must exist.
    pub leaf: Option<CString>,
    /// What it and all its children are kept from.
    pub confinement: Option<Arc<Confinement>>,
}

/// Where the child's standard input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// `/dev/null`: end of file at once.
    Null,
    Pipe,
}

/// Where the child's standard output and error go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// One pipe for both, so that their order is exact.
    Merged,
    /// A pipe each.
    Split,
    /// A pty of this size, which also is standard input where that is a [`Stdin::Pipe`].
    Pty(WindowSize),
}

/// A started leader and our ends of its pipes, which do not block.
#[derive(Debug)]
pub struct Spawned {
    pub child: Child,
    pub stdin: Option<OwnedFd>,
    pub output: OutputEnds,
}

/// Our read ends, by kind of output.
#[derive(Debug)]
pub enum OutputEnds {
    Merged(OwnedFd),
    Split {
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    /// Our end of the pty, for both directions, and the terminal itself: while somebody has that
    /// open, our end is not at its end, whatever the command does with its own.
    Pty {
        ours: OwnedFd,
        terminal: OwnedFd,
    },
}

/// What never started: at which step, and what the kernel said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{step} failed")]
pub struct Failure {
    pub step: Step,
    #[source]
    pub errno: Errno,
}

/// The steps of a spawn, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum Step {
    #[error("making the pipes")]
    Pipes = 1,
    #[error("opening a pty")]
    Pty,
    #[error("making the process in a cgroup of its own")]
    Leaf,
    #[error("making the process")]
    Clone,
    #[error("making a session for the process")]
    Session,
    #[error("connecting the standard streams")]
    Streams,
    #[error("taking the terminal as its own")]
    Terminal,
    #[error("resetting the signals")]
    Signals,
    #[error("being itself in its user namespace")]
    Identity,
    #[error("making its files read-only")]
    ReadOnly,
    #[error("keeping what it may write")]
    Kept,
    #[error("protecting parts of what it may write")]
    Protected,
    #[error("hiding folders from it")]
    Hidden,
    #[error("changing to the working directory")]
    Cwd,
    #[error("dropping its privileges")]
    Privileges,
    #[error("making its Landlock ruleset")]
    Ruleset,
    #[error("restricting it by Landlock")]
    Landlock,
    #[error("closing other descriptors")]
    Descriptors,
    #[error("setting its limits")]
    Limits,
    #[error("filtering its system calls")]
    Filter,
    #[error("executing the program")]
    Program,
    /// The command ran for a moment but this program had no room for its descriptors, so it was
    /// killed.
    #[error("taking over the descriptors")]
    Handover,
}

impl Step {
    pub(super) const ALL: [Self; 22] = [
        Self::Pipes,
        Self::Pty,
        Self::Leaf,
        Self::Clone,
        Self::Session,
        Self::Streams,
        Self::Terminal,
        Self::Signals,
        Self::Identity,
        Self::ReadOnly,
        Self::Kept,
        Self::Protected,
        Self::Hidden,
        Self::Cwd,
        Self::Privileges,
        Self::Ruleset,
        Self::Landlock,
        Self::Descriptors,
        Self::Limits,
        Self::Filter,
        Self::Program,
        Self::Handover,
    ];

    /// The step with this number, as it crosses memory or a socket.
    pub(super) fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|step| *step as u8 == number)
    }
}
