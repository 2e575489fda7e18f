//! What to run, as given by the caller. Nothing here is checked: the plan does that.
//!
//! `plan` checks a launch and makes it ready to spawn, with `environment` and `directory`.

pub(crate) mod directory;
pub(crate) mod environment;
pub(crate) mod plan;
pub(crate) mod resources;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use lastbyte_output::log::Quota;
use lastbyte_output::mask::Secret;
use lastbyte_sys::pty::WindowSize;

use crate::Id;
use crate::sandbox::{Enforcement, Sandbox};
use crate::stop::StopPolicy;

pub use resources::{EnforcedBy, Resource, ResourceError, ResourceRules, Resources};

/// A command and all its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    pub program: Program,
    /// The name that the program sees as its own; `None` is the first argument.
    pub arg0: Option<OsString>,
    /// `None` uses the engine's default.
    pub cwd: Option<PathBuf>,
    pub base_env: BaseEnv,
    /// Applied to the base environment, in order.
    pub env: Vec<EnvEdit>,
    /// Applied last; the edits cannot override it.
    pub forced_env: Vec<(OsString, OsString)>,
    /// Variables that no edit may name. Their values are masked in the output.
    pub secrets: Vec<Secret>,
    pub stdin: Stdin,
    pub streams: Streams,
    pub timeouts: Timeouts,
    pub on_timeout: OnTimeout,
    pub on_disconnect: OnDisconnect,
    pub stop: StopPolicy,
    pub drain: DrainRule,
    pub quota: Quota,
    pub on_quota: OnQuota,
    pub sandbox: Sandbox,
    pub resources: Resources,
    pub session: Option<Session>,
    /// A start with the same key and the same launch is the same process.
    pub key: Option<Key>,
    /// No other running process has it, or none of its session.
    pub name: Option<Name>,
    pub name_unique: NameUnique,
    pub labels: BTreeMap<String, String>,
    /// Reported to readers of the feed after the ending.
    pub touches: Option<Touches>,
    /// Whether it goes on when the server dies and another one takes over. One that belongs to a
    /// connection does not: its client is gone.
    pub outlives_server: bool,
}

/// What others may know of a launch: no values of variables, no input. The handle, the journal and
/// the feed share one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    pub id: Id,
    pub started: SystemTime,
    pub program: Program,
    /// The directory it was started in.
    pub cwd: PathBuf,
    /// The variables that the launch sets or removes.
    pub env_names: Vec<OsString>,
    /// The secret variables; they are not among the others.
    pub secret_names: Vec<String>,
    /// As launched; a terminal may have been resized since.
    pub streams: Streams,
    pub stop: StopPolicy,
    /// The policy that it and all its children are held to.
    pub sandbox: Sandbox,
    /// `None` for a policy without restrictions, and wherever `limits` is `None`.
    pub enforcement: Option<Enforcement>,
    /// `None` for a process that an earlier version started.
    pub limits: Option<Limits>,
    /// What it and all its children may use; `None` without limits.
    pub resources: Option<Limited>,
    pub on_disconnect: OnDisconnect,
    pub session: Option<Session>,
    pub key: Option<Key>,
    pub name: Option<Name>,
    pub labels: BTreeMap<String, String>,
}

/// Among which running processes a name is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameUnique {
    OnServer,
    /// Among those of its session: a client of one session does not hear of other sessions' names.
    InSession,
}

/// The program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// The first argument is looked up in the child's `PATH` unless it contains a slash.
    Argv(Vec<OsString>),
    /// Run by `sh -c`.
    Shell(OsString),
}

/// What the edits of the environment are applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BaseEnv {
    /// The base environment of the engine. The command also gets the cookie.
    Engine,
    /// No variables, so the command has exactly those that the launch sets. It gets the cookie only
    /// where its tree has no other mark.
    Empty,
}

/// One change to the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnvEdit {
    Set(OsString, OsString),
    Unset(OsString),
}

/// The command's standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stdin {
    /// It reads end of file at once.
    Closed,
    Open,
    /// It reads this, then end of file. Limited to the size of the input queue, 16 MiB.
    Given(Vec<u8>),
}

/// How standard output and error reach the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Through one pipe: their order is exact, but they cannot be told apart.
    Merged,
    /// Through one pipe each: they can be told apart, in order of arrival.
    Split,
    /// On a terminal of this size, which is also standard input if that is open. As on any
    /// terminal, the foreground group gets SIGHUP when the leader exits, including background
    /// children. A process that ignores it keeps a terminal on which writes fail.
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

/// How long a command may run and how much of its output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub timeouts: Timeouts,
    pub on_timeout: OnTimeout,
    pub quota: Quota,
    pub on_quota: OnQuota,
}

/// The limits that a process has, with the server's own, and how each is enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limited {
    pub limits: Resources,
    pub by: Vec<(Resource, EnforcedBy)>,
}

/// What to do with a command that takes too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTimeout {
    /// Stop it and its tree.
    Stop,
    /// Report it and let it run; no timer runs from then on.
    Background,
}

/// What to do with a command whose clients are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDisconnect {
    #[default]
    Keep,
    /// Stop it and its tree once no client has been connected to it for this long. After its ending
    /// this goes for its survivors.
    Stop { after: Duration },
}

/// What to do with output that exceeds the quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnQuota {
    /// Drop the middle; the command never waits.
    Drop,
    /// Drop nothing that a pinned reader has not read: the command waits while the slowest one is a
    /// quota behind. The log is pinned from its first byte, until a reader takes over that pin.
    Block,
}

/// How long to wait for output after the leader has exited while another process holds its pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrainRule {
    /// Ends when no byte has arrived for this long.
    pub quiet_window: Duration,
    /// Ends this long after the exit, even if output still arrives.
    pub limit: Duration,
    /// How long to search for the processes that hold the pipes, once the output is complete.
    pub holders: Duration,
}

/// The isolation boundary a process belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Session(pub String);

/// What a command may have changed when it has ended, and on whose behalf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touches {
    pub sessions: Vec<Session>,
    pub paths: Vec<PathBuf>,
}

/// What a caller calls a process, instead of its id. Unique among running processes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(pub String);

/// A name the caller gives a start so that it can be retried safely.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key(pub String);

impl Launch {
    /// A launch of this program with every setting at its default.
    pub fn new(program: Program) -> Self {
        Self {
            program,
            arg0: None,
            cwd: None,
            base_env: BaseEnv::Engine,
            env: Vec::new(),
            forced_env: Vec::new(),
            secrets: Vec::new(),
            stdin: Stdin::Closed,
            streams: Streams::Merged,
            timeouts: Timeouts::default(),
            on_timeout: OnTimeout::Stop,
            on_disconnect: OnDisconnect::Keep,
            stop: StopPolicy::default(),
            drain: DrainRule::default(),
            quota: Quota::DEFAULT,
            on_quota: OnQuota::Drop,
            sandbox: Sandbox::FullAccess,
            resources: Resources::default(),
            session: None,
            key: None,
            name: None,
            name_unique: NameUnique::OnServer,
            labels: BTreeMap::new(),
            touches: None,
            outlives_server: true,
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

    /// The session that its name has to be unique in; `None` for all.
    pub(crate) fn name_within(&self) -> Option<Session> {
        match self.name_unique {
            NameUnique::OnServer => None,
            NameUnique::InSession => self.session.clone(),
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        let Self { timeouts, on_timeout, quota, on_quota, .. } = *self;
        Limits { timeouts, on_timeout, quota, on_quota }
    }

    /// The variables that it sets or removes.
    pub(crate) fn env_names(&self) -> impl Iterator<Item = &OsString> {
        let edited = self.env.iter().map(|edit| match edit {
            EnvEdit::Set(name, _) | EnvEdit::Unset(name) => name,
        });
        edited.chain(self.forced_env.iter().map(|(name, _)| name))
    }
}

impl Spec {
    pub(crate) fn new(id: Id, launch: &Launch, cwd: PathBuf, started: SystemTime) -> Self {
        Self {
            id,
            started,
            program: launch.program.clone(),
            cwd,
            env_names: launch.env_names().cloned().collect(),
            secret_names: launch.secrets.iter().map(|secret| secret.name().to_owned()).collect(),
            streams: launch.streams,
            stop: launch.stop,
            sandbox: launch.sandbox.clone(),
            enforcement: None,
            limits: Some(launch.limits()),
            resources: None,
            on_disconnect: launch.on_disconnect,
            session: launch.session.clone(),
            key: launch.key.clone(),
            name: launch.name.clone(),
            labels: launch.labels.clone(),
        }
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
