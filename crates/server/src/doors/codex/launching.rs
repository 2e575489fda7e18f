//! What a request wants run, as a launch; and why it did not come to that, in Codex's words.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use lastbyte_engine::{
    EnvEdit, Errno, Launch, LaunchError, OnQuota, Part, SpawnError, StartError, Stdin, StopPolicy,
    Streams, Timeouts, WindowSize,
};

use super::door::{Door, Streaming};
use super::family::Family;
use super::methods::Target;

/// Of each stream, unless the request says otherwise.
pub(super) const DEFAULT_CAP: u64 = 1 << 20;
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const DEFAULT_SIZE: WindowSize = WindowSize { rows: 24, cols: 80 };

/// A command that was judged and may be started.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) family: Family,
    /// The id that the client gave, if it did.
    pub(super) target: Option<Target>,
    pub(super) launch: Launch,
    pub(super) output: Output,
    /// Whether requests about it can reach it.
    pub(super) control: Streaming,
}

/// What the client gets of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Output {
    /// So many bytes of each stream; `None` for all.
    pub(super) cap: Option<u64>,
    pub(super) delivery: Delivery,
}

/// How the client gets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// As text, with the end.
    Buffered,
    /// As it comes.
    Streamed,
}

/// A command in the words of both methods that start one.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) argv: Vec<String>,
    /// As seen from the server's own directory.
    pub(super) cwd: PathBuf,
    pub(super) env: BTreeMap<String, Option<String>>,
    pub(super) streamed: Streamed,
    /// Of its terminal, if it has one.
    pub(super) size: Option<WindowSize>,
    pub(super) timeout: Option<Duration>,
}

/// The flags of both methods that say how a command is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Streamed {
    pub(super) tty: bool,
    pub(super) stdin: bool,
    pub(super) output: bool,
}

/// Names that no command gets to see, whoever sets them.
const HIDDEN: [&str; 6] = [
    "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
    "NODE_REPL_AUTH_TOKEN",
    "OPENAI_FEDERATION_RULE_ID",
    "OPENAI_IDENTITY_TOKEN_FILE",
    "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
    "CODEX_APPLY_PATCH_PRESERVE_LINE_ENDINGS",
];

impl Streamed {
    pub(super) fn is_anything(self) -> bool {
        self.tty || self.stdin || self.output
    }

    pub(super) fn delivery(self) -> Delivery {
        match self.tty || self.output {
            true => Delivery::Streamed,
            false => Delivery::Buffered,
        }
    }

    fn stdin(self) -> Stdin {
        match self.tty || self.stdin {
            true => Stdin::Open,
            false => Stdin::Closed,
        }
    }

    fn streams(self, size: Option<WindowSize>) -> Streams {
        match self.tty {
            true => Streams::Pty(size.unwrap_or(DEFAULT_SIZE)),
            false => Streams::Split,
        }
    }
}

impl Program {
    pub(super) fn launch(self, door: &Door) -> Launch {
        let mut env: Vec<EnvEdit> =
            self.env.into_iter().filter_map(edit).chain(hide(door)).collect();
        if self.streamed.tty && value_of("SHELL", &env, door).is_none() {
            env.push(EnvEdit::Set("SHELL".into(), door.settings().login_shell.clone()));
        }
        Launch {
            cwd: Some(door.settings().cwd.join(self.cwd)),
            env,
            stdin: self.streamed.stdin(),
            streams: self.streamed.streams(self.size),
            timeouts: Timeouts { wall: self.timeout, idle: None },
            // Whatever ends it early ends it at once, with all that it has started.
            stop: StopPolicy::KILL,
            // A client that reads slowly makes the command wait and loses nothing.
            on_quota: OnQuota::Block,
            labels: BTreeMap::from([("door".into(), "codex".into())]),
            ..Launch::argv(self.argv)
        }
    }
}

/// A name with an equals sign ends before it, as it does in the environment itself.
fn edit((name, value): (String, Option<String>)) -> Option<EnvEdit> {
    let (name, value) = match (name.split_once('='), value) {
        (None, value) => (name, value),
        (Some((name, more)), Some(value)) => (name.to_owned(), Some(format!("{more}={value}"))),
        (Some(_), None) => return None,
    };
    match (name.is_empty() || is_hidden(&name), value) {
        (true, _) => None,
        (false, Some(value)) => Some(EnvEdit::Set(name.into(), value.into())),
        (false, None) => Some(EnvEdit::Unset(name.into())),
    }
}

/// The hidden names that the server itself has.
fn hide(door: &Door) -> impl Iterator<Item = EnvEdit> {
    let names = door.settings().environment.iter().map(|(name, _)| name);
    let hidden = names.filter(|name| name.to_str().is_some_and(is_hidden));
    hidden.map(|name| EnvEdit::Unset(name.to_owned()))
}

fn is_hidden(name: &str) -> bool {
    HIDDEN.iter().any(|hidden| hidden.eq_ignore_ascii_case(name))
}

/// Why a command was not started, as Codex says it.
pub(super) fn why_not(error: &StartError, launch: &Launch, door: &Door) -> String {
    let on_a_terminal = matches!(launch.streams, Streams::Pty(_));
    match error {
        StartError::Launch(LaunchError::EmptyCommand) if on_a_terminal => {
            "missing program for PTY spawn".into()
        }
        StartError::Launch(LaunchError::EmptyCommand) => "missing program for pipe spawn".into(),
        StartError::Launch(LaunchError::Nul { what: Part::EnvName(_) | Part::EnvValue(_) }) => {
            "data provided contains a nul byte".into()
        }
        StartError::Launch(LaunchError::Nul { what: Part::Argument(_) | Part::Cwd }) => {
            "nul byte found in provided data".into()
        }
        StartError::Launch(LaunchError::Cwd { errno, .. }) => errno.to_string(),
        StartError::Spawn(SpawnError::Program { program, errno: Errno::NOENT })
            if on_a_terminal && !program.as_encoded_bytes().contains(&b'/') =>
        {
            not_in_path(program, launch, door)
        }
        StartError::Spawn(error) => error.errno().to_string(),
        StartError::Launch(LaunchError::EnvName { .. } | LaunchError::Input { .. })
        | StartError::Sandbox(_)
        | StartError::KeyConflict { .. }
        | StartError::Closed => error.to_string(),
    }
}

fn not_in_path(program: &OsString, launch: &Launch, door: &Door) -> String {
    let program = program.display();
    match value_of("PATH", &launch.env, door) {
        Some(path) => format!(
            "Unable to spawn {program} because:\nNo viable candidates found in PATH {path:?}"
        ),
        None => format!("Unable to spawn {program} because:\nUnable to resolve the PATH"),
    }
}

/// What a command with these edits has under a name.
fn value_of<'a>(name: &str, edits: &'a [EnvEdit], door: &'a Door) -> Option<&'a OsStr> {
    let own = door.settings().environment.get(name);
    edits.iter().fold(own, |before, edit| match edit {
        EnvEdit::Set(set, value) if set == name => Some(value),
        EnvEdit::Unset(unset) if unset == name => None,
        EnvEdit::Set(..) | EnvEdit::Unset(_) => before,
    })
}
