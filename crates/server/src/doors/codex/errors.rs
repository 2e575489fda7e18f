//! Errors as this protocol reports them. Codes and texts are those of Codex, word for word, and
//! errors of the engine become faults nowhere else.

use std::ffi::OsStr;
use std::time::Duration;

use lastbyte_engine::{
    Launch, LaunchError, Part, ResizeError, SpawnError, StartError, Streams, WriteError,
};

use super::door::Door;
use super::launch::value_of;
use super::methods::{Api, Target};
use crate::doors::rpc::{Fault, to_json};
use crate::verbs::refusal::with_cause;

impl Api {
    pub(super) fn size_requires_tty(self) -> Fault {
        let method = self.names().start_method;
        Fault::invalid_params(format!("{method} size requires tty: true"))
    }

    /// A `timeoutMs`; without one there is no limit.
    pub(super) fn timeout(self, ms: Option<i64>) -> Result<Option<Duration>, Fault> {
        let Some(ms) = ms else { return Ok(None) };
        u64::try_from(ms).map(|ms| Some(Duration::from_millis(ms))).map_err(|_| {
            let method = self.names().start_method;
            Fault::invalid_params(format!("{method} timeoutMs must be non-negative, got {ms}"))
        })
    }

    pub(super) fn zero_size(self) -> Fault {
        let name = self.names().command;
        Fault::invalid_params(format!("{name} size rows and cols must be greater than 0"))
    }

    pub(super) fn nothing_to_write(self) -> Fault {
        let method = self.names().write_method;
        Fault::invalid_params(format!("{method} requires deltaBase64 or closeStdin"))
    }

    pub(super) fn stdin_not_enabled(self) -> Fault {
        let name = self.names().command;
        Fault::invalid_request(format!("stdin streaming is not enabled for this {name}"))
    }

    /// The command was not started, for a reason in Codex's words.
    pub(super) fn not_started(self, error: &StartError, launch: &Launch, door: &Door) -> Fault {
        let on_terminal = matches!(launch.streams, Streams::Pty(_));
        self.not_spawned(&match error {
            StartError::Sandbox(error) => return self.not_sandboxed(error),
            StartError::Launch(LaunchError::EmptyCommand) => {
                format!("missing program for {} spawn", if on_terminal { "PTY" } else { "pipe" })
            }
            StartError::Launch(LaunchError::Nul { what: Part::EnvName(_) | Part::EnvValue(_) }) => {
                "data provided contains a nul byte".into()
            }
            StartError::Launch(LaunchError::Nul { what: Part::Argument(_) | Part::Cwd }) => {
                "nul byte found in provided data".into()
            }
            StartError::Launch(LaunchError::Cwd { errno, .. }) => errno.to_string(),
            StartError::Spawn(SpawnError::NotInPath { program }) if on_terminal => {
                not_in_path(program, launch, door)
            }
            StartError::Spawn(error) => error.errno().to_string(),
            StartError::Launch(
                LaunchError::EnvName { .. }
                | LaunchError::SecretTwice { .. }
                | LaunchError::Input { .. },
            )
            | StartError::KeyConflict { .. }
            | StartError::NameTaken { .. }
            | StartError::Resources(_)
            | StartError::Cap(_)
            | StartError::Closed => error.to_string(),
        })
    }

    /// The policy cannot be enforced, so nothing was started.
    pub(super) fn not_sandboxed(self, error: &dyn std::error::Error) -> Fault {
        let why = with_cause(error);
        match self {
            Self::CommandExec => Fault::internal(format!("exec failed: {why}")),
            Self::Process => self.not_spawned(&why),
        }
    }

    fn not_spawned(self, why: &str) -> Fault {
        let what = match self {
            Self::CommandExec => "command",
            Self::Process => "process",
        };
        Fault::internal(format!("failed to spawn {what}: {why}"))
    }
}

fn not_in_path(program: &OsStr, launch: &Launch, door: &Door) -> String {
    let why = match value_of("PATH", &launch.env, door) {
        Some(path) => format!("No viable candidates found in PATH {path:?}"),
        None => "Unable to resolve the PATH".into(),
    };
    format!("Unable to spawn {} because:\n{why}", program.display())
}

impl Target {
    pub(super) fn duplicate(&self) -> Fault {
        let id = self.quoted_id();
        Fault::invalid_request(match self.api {
            Api::CommandExec => format!("duplicate active command/exec process id: {id}"),
            Api::Process => format!("duplicate active process handle: {id}"),
        })
    }

    pub(super) fn not_active(&self) -> Fault {
        let id = self.quoted_id();
        Fault::invalid_request(match self.api {
            Api::CommandExec => format!("no active command/exec for process id {id}"),
            Api::Process => format!("no active process for process handle {id}"),
        })
    }

    pub(super) fn no_longer_running(&self) -> Fault {
        let (name, id) = (self.api.names().command, self.quoted_id());
        Fault::invalid_request(format!("{name} {id} is no longer running"))
    }

    pub(super) fn not_written(&self, error: WriteError) -> Fault {
        match error {
            WriteError::Exited => self.no_longer_running(),
            WriteError::NotOpen => self.api.stdin_not_enabled(),
            WriteError::Closed | WriteError::Broken => {
                Fault::invalid_request("stdin is already closed")
            }
            // Try again later.
            WriteError::QueueFull { .. } | WriteError::Gap { .. } | WriteError::KeyboardTaken => {
                Fault::new(-32001, error.to_string())
            }
        }
    }

    pub(super) fn not_resized(&self, error: ResizeError) -> Fault {
        let why = match error {
            error @ ResizeError::KeyboardTaken => error.to_string(),
            ResizeError::Exited => return self.no_longer_running(),
            ResizeError::Zero => return self.api.zero_size(),
            ResizeError::NoTerminal => "process is not attached to a PTY".into(),
            ResizeError::Refused(errno) => errno.to_string(),
        };
        Fault::invalid_request(format!("failed to resize PTY: {why}"))
    }

    /// Codex prints one kind of id as JSON and the other as Rust does.
    fn quoted_id(&self) -> String {
        let id = self.id.as_deref().unwrap_or_default();
        match self.api {
            Api::CommandExec => to_json(id),
            Api::Process => format!("{id:?}"),
        }
    }
}
