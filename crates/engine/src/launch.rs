//! What to run, as a caller says it. Nothing here has been checked: that is the plan's work.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lastbyte_output::log::Quota;
use lastbyte_sys::pty::WindowSize;

use crate::sandbox::Sandbox;
use crate::stop::StopPolicy;

/// A command and everything that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub program: Program,
    /// `None` leaves it to the engine's rules for a default.
    pub cwd: Option<PathBuf>,
    /// Applied over the base environment, in order.
    pub env: Vec<EnvEdit>,
    /// Applied last; the edits cannot override it.
    pub forced_env: Vec<(OsString, OsString)>,
    pub stdin: Stdin,
    pub streams: Streams,
    pub timeouts: Timeouts,
    pub on_timeout: OnTimeout,
    pub stop: StopPolicy,
    pub drain: DrainRule,
    pub quota: Quota,
    pub on_quota: OnQuota,
    pub sandbox: Sandbox,
    pub session: Option<Session>,
    /// A start with the same key and the same launch is the same process.
    pub key: Option<Key>,
    pub labels: BTreeMap<String, String>,
    /// Told to readers of the feed after the ending.
    pub touches: Option<Touches>,
}

/// The program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// The first is looked up in the child's `PATH` unless it has a slash.
    Argv(Vec<OsString>),
    /// Run by `sh -c`.
    Shell(OsString),
}

/// One change to the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvEdit {
    Set(OsString, OsString),
    Unset(OsString),
}

/// Whether the command can be written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stdin {
    /// It reads the end of file at once.
    Closed,
    Open,
    /// It reads this, then the end of file. At most what the input queue takes, 16 MiB.
    Given(Vec<u8>),
}

/// How standard output and error reach the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Through one pipe: their order is exact, they cannot be told apart.
    Merged,
    /// Through a pipe each: told apart, their order is that of arrival.
    Split,
    /// On a terminal of this size, which is standard input too where that is open. As on any
    /// terminal, the foreground group is hung up (SIGHUP) when the leader exits, background
    /// children included; one that ignores that keeps a line on which nothing can be written.
    Pty(WindowSize),
}

/// When a command takes too long. A time past the end of the clock means never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timeouts {
    /// From the start.
    pub wall: Option<Duration>,
    /// From the last byte of output on any stream.
    pub idle: Option<Duration>,
}

/// What happens to a command that takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTimeout {
    /// It is stopped with its tree.
    Stop,
    /// That is told, and it runs on; no timer runs from then on.
    Background,
}

/// What happens to output that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnQuota {
    /// The middle is dropped; the command never waits.
    Drop,
    /// Nothing that a pinned reader has not read is dropped: the command waits while the slowest
    /// one is a quota behind. The log is pinned from its first byte, for whoever takes that pin.
    Block,
}

/// How long output is waited for after the leader's exit while somebody else holds its pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainRule {
    /// Ended when no byte came for this long.
    pub quiet_window: Duration,
    /// Ended this long after the exit, whatever still comes.
    pub limit: Duration,
    /// How long those who hold the pipes are looked for, once the output is complete.
    pub holders: Duration,
}

/// The isolation boundary a process belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Session(pub String);

/// What a command may have changed when it has ended, and on whose behalf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touches {
    pub chats: Vec<String>,
    pub paths: Vec<PathBuf>,
}

/// A name the caller gives a start so that it can be repeated safely.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(pub String);

impl Launch {
    /// A launch of this program with every setting at its default.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            cwd: None,
            env: Vec::new(),
            forced_env: Vec::new(),
            stdin: Stdin::Closed,
            streams: Streams::Merged,
            timeouts: Timeouts::default(),
            on_timeout: OnTimeout::Stop,
            stop: StopPolicy::default(),
            drain: DrainRule::default(),
            quota: Quota::DEFAULT,
            on_quota: OnQuota::Drop,
            sandbox: Sandbox::FullAccess,
            session: None,
            key: None,
            labels: BTreeMap::new(),
            touches: None,
        }
    }

    /// Shell text, run by `sh -c`.
    pub fn shell(text: impl Into<OsString>) -> Self {
        Self::new(Program::Shell(text.into()))
    }

    /// A program and its arguments.
    pub fn argv(argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self::new(Program::Argv(argv.into_iter().map(Into::into).collect()))
    }
}

impl Default for DrainRule {
    fn default() -> Self {
        Self {
            quiet_window: Duration::from_millis(50),
            limit: Duration::from_secs(2),
            holders: Duration::from_millis(20),
        }
    }
}
