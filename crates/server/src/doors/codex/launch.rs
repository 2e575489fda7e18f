//! A command that a request wants started, as a launch of the engine.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use lastbyte_engine::{
    EnvEdit, Launch, OnQuota, Sandbox, Stdin, StopPolicy, Streams, Timeouts, WindowSize,
};

use super::door::Door;
use super::methods::Action;
use crate::doors::rpc::is_hidden;

/// Of each stream, unless the request says otherwise.
pub(super) const DEFAULT_CAP: u64 = 1 << 20;
const DEFAULT_SIZE: WindowSize = WindowSize { rows: 24, cols: 80 };

/// A command that passed all checks.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) launch: Launch,
    /// At most this many bytes of each stream.
    pub(super) cap: Option<u64>,
    /// Whether the client gets the output as it comes, or as text with the result.
    pub(super) streamed: bool,
}

/// What the parameters of both methods that start a command have in common.
#[derive(Debug)]
pub(super) struct CommandParams {
    pub(super) argv: Vec<String>,
    pub(super) cwd: PathBuf,
    pub(super) env: BTreeMap<String, Option<String>>,
    pub(super) tty: bool,
    pub(super) stream_stdin: bool,
    pub(super) stream_output: bool,
    /// At most this many bytes of each stream.
    pub(super) cap: Option<u64>,
    /// Of its terminal, if it has one.
    pub(super) size: Option<WindowSize>,
    pub(super) timeout: Option<Duration>,
    pub(super) sandbox: Sandbox,
}

impl CommandParams {
    pub(super) fn start(self, door: &Door) -> Action {
        let Self { tty, cap, .. } = self;
        let mut env: Vec<EnvEdit> =
            self.env.into_iter().filter_map(edit).chain(hide(door)).collect();
        if tty && value_of("SHELL", &env, door).is_none() {
            env.push(EnvEdit::Set("SHELL".into(), door.settings.login_shell.clone()));
        }
        let size = self.size.unwrap_or(DEFAULT_SIZE);
        let launch = Launch {
            cwd: Some(self.cwd),
            env,
            stdin: if tty || self.stream_stdin { Stdin::Open } else { Stdin::Closed },
            streams: if tty { Streams::Pty(size) } else { Streams::Split },
            timeouts: Timeouts { wall: self.timeout, idle: None },
            // Whatever ends it early kills it at once, with everything it has started.
            stop: StopPolicy::KILL,
            // A client that reads slowly makes the command wait and loses nothing.
            on_quota: OnQuota::Block,
            sandbox: self.sandbox,
            session: door.session.clone(),
            labels: BTreeMap::from([("door".into(), "codex".into())]),
            outlives_server: false,
            ..Launch::argv(self.argv)
        };
        Action::Start(Box::new(Start { launch, cap, streamed: tty || self.stream_output }))
    }
}

/// A name with an equals sign ends before it, as it does in the environment itself.
fn edit((name, value): (String, Option<String>)) -> Option<EnvEdit> {
    let (name, value) = match (name.split_once('='), value) {
        (None, value) => (name, value),
        (Some((name, more)), Some(value)) => (name.to_owned(), Some(format!("{more}={value}"))),
        (Some(_), None) => return None,
    };
    if name.is_empty() || is_hidden(&name) {
        return None;
    }
    Some(match value {
        Some(value) => EnvEdit::Set(name.into(), value.into()),
        None => EnvEdit::Unset(name.into()),
    })
}

/// The hidden names that the server itself has.
fn hide(door: &Door) -> impl Iterator<Item = EnvEdit> {
    let names = door.settings.environment.iter().map(|(name, _)| name);
    let hidden = names.filter(|name| name.to_str().is_some_and(is_hidden));
    hidden.map(|name| EnvEdit::Unset(name.to_owned()))
}

/// The value of a variable for a command with these edits.
pub(super) fn value_of<'a>(name: &str, edits: &'a [EnvEdit], door: &'a Door) -> Option<&'a OsStr> {
    let own = door.settings.environment.get(name);
    edits.iter().fold(own, |before, edit| match edit {
        EnvEdit::Set(set, value) if set == name => Some(value),
        EnvEdit::Unset(unset) if unset == name => None,
        EnvEdit::Set(..) | EnvEdit::Unset(_) => before,
    })
}
