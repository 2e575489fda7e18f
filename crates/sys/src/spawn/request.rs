//! A spawn request, and how it can fail.

use std::ffi::CString;
use std::sync::Arc;

use rustix::io::Errno;

use crate::confine::Confinement;
use crate::pty::WindowSize;
use crate::registry::Place;
use crate::rlimits::Rlimits;
use crate::tag::Tag;

/// Everything a child needs, ready to use between clone and exec, where nothing can be allocated.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Paths to try in order, as `execvp` does for each folder of `PATH`.
    pub programs: Vec<CString>,
    pub argv: Vec<CString>,
    /// `NAME=value` entries: the whole environment.
    pub env: Vec<CString>,
    pub cwd: CString,
    pub stdin: Stdin,
    pub output: Output,
    /// The cgroup to create the child in; its folder must exist.
    pub cgroup: Option<CString>,
    /// Identifies the child and all its descendants.
    pub tag: Option<Tag>,
    /// Restricts the child and all its descendants.
    pub confinement: Option<Arc<Confinement>>,
    /// What each of its processes may use.
    pub rlimits: Rlimits,
    /// A file that the child removes before anything else. If it is gone, the child does not run:
    /// so a program that removes it first knows that the command will never run.
    pub gate: Option<CString>,
    /// Where the child is entered for a keeper: the kernel writes its pid there before it runs.
    pub place: Option<Place>,
}

/// Where the child's standard input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stdin {
    /// `/dev/null`: end of file at once.
    #[default]
    Null,
    Pipe,
}

/// Where the child's standard output and error go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Output {
    /// One pipe for both, so that their order is exact.
    #[default]
    Merged,
    /// A pipe each.
    Split,
    /// A pty of this size. It is also standard input if that is a [`Stdin::Pipe`].
    Pty(WindowSize),
}

/// Why a command did not start: the step that failed and the kernel's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{step} failed")]
pub struct Failure {
    pub step: Step,
    #[source]
    pub errno: Errno,
}

/// The steps of a spawn, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Step {
    #[error("creating the pipes")]
    Pipes,
    #[error("opening a pty")]
    Pty,
    #[error("creating the process in its own cgroup")]
    Cgroup,
    #[error("creating the process")]
    Clone,
    #[error("removing its gate file")]
    Gate,
    #[error("creating its session")]
    Session,
    #[error("connecting the standard streams")]
    Streams,
    #[error("taking the terminal as its controlling terminal")]
    Terminal,
    #[error("resetting the signals")]
    Signals,
    #[error("mapping its uid and gid")]
    Identity,
    #[error("making its files read-only")]
    ReadOnly,
    #[error("mounting its writable folders")]
    Kept,
    #[error("protecting parts of its writable folders")]
    Protected,
    #[error("hiding folders from it")]
    Hidden,
    #[error("changing to the working directory")]
    Cwd,
    #[error("dropping its privileges")]
    Privileges,
    #[error("creating its Landlock ruleset")]
    Ruleset,
    #[error("applying its Landlock ruleset")]
    Landlock,
    #[error("closing other descriptors")]
    Descriptors,
    #[error("setting its limits")]
    Limits,
    #[error("filtering its system calls")]
    Filter,
    #[error("executing the program")]
    Program,
    /// Passing descriptors between this program and its spawners.
    #[error("handing over the descriptors")]
    Handover,
    /// The command has run and exited, and its status is lost.
    #[error("opening a pidfd of the process (it has run)")]
    Held,
}

impl Step {
    /// Makes a [`Failure`] of an error at this step.
    pub(super) fn failed(self) -> impl Fn(Errno) -> Failure {
        move |errno| Failure { step: self, errno }
    }
}
