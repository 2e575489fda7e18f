//! What to run: the options that `run` and `start` share.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use lastbyte_client::wire::TimeoutKind;
use lastbyte_engine::{EnvEdit, Program, Signal};

use crate::sandbox_args::SandboxArgs;
use crate::{units, usage};

/// A command, its surroundings and its time.
#[derive(Debug, clap::Args)]
pub(crate) struct LaunchArgs {
    /// Exactly one; more are taken only to say what is wrong.
    #[arg(hide = true)]
    text: Vec<OsString>,

    /// What follows `--`.
    #[arg(hide = true, last = true)]
    argv: Vec<OsString>,

    /// Stop the command after this long, like 500ms, 2s, 1.5m or 1h
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,

    /// Stop the command when it has written nothing for this long
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, allow_hyphen_values = true)]
    pub(crate) idle_timeout: Option<Duration>,

    /// Run the command in this directory [default: the current one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Set an environment variable; repeatable
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<OsString>,

    /// Remove an environment variable; repeatable, and --env wins over it
    #[arg(long, value_name = "NAME")]
    unset: Vec<OsString>,

    /// Stop the command with this signal [default: TERM]
    #[arg(long, value_name = "SIGNAL", allow_hyphen_values = true)]
    pub(crate) stop_signal: Option<Signal>,

    /// Kill the command and everything it started this long after that signal; 0s kills at once
    /// [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration_or_zero, allow_hyphen_values = true)]
    pub(crate) grace: Option<Duration>,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,
}

impl LaunchArgs {
    /// One shell command, or words after `--`.
    pub(crate) fn program(&self, verb: &'static str) -> Result<Program, usage::Error> {
        match (self.text.as_slice(), self.argv.as_slice()) {
            ([], []) => Err(usage::Error::NoCommand(verb)),
            ([_, ..], [_, ..]) => Err(usage::Error::TwoCommands(verb)),
            ([text], []) if text.is_empty() => Err(usage::Error::EmptyText(verb)),
            ([], [program, ..]) if program.is_empty() => Err(usage::Error::EmptyProgram(verb)),
            ([text], []) => Ok(Program::Shell(text.clone())),
            ([], argv) => Ok(Program::Argv(argv.to_vec())),
            (words, []) => Err(usage::Error::NotQuoted { verb, words: words.to_vec() }),
        }
    }

    /// An absolute path: the server's own directory is another.
    pub(crate) fn directory(&self) -> anyhow::Result<PathBuf> {
        if let Some(cwd) = self.cwd.as_ref().filter(|cwd| cwd.is_absolute()) {
            return Ok(cwd.clone());
        }
        let current = match env::current_dir() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                bail!("the current directory no longer exists; choose one with --cwd DIR")
            }
            current => current.context("cannot find the current directory")?,
        };
        Ok(match &self.cwd {
            Some(cwd) => current.join(cwd),
            None => current,
        })
    }

    /// Says that the command was stopped by this timeout.
    pub(crate) fn timed_out(&self, which: TimeoutKind) -> String {
        let (after, silent) = match which {
            TimeoutKind::Wall => (self.timeout, ""),
            TimeoutKind::Idle => (self.idle_timeout, " without output"),
        };
        let after = after.map(units::duration_text).unwrap_or_default();
        format!("timed out after {after}{silent}; stopped")
    }

    pub(crate) fn env_edits(&self) -> Result<Vec<EnvEdit>, usage::Error> {
        let unset = self.unset.iter().map(|name| match name.as_bytes() {
            bytes if bytes.is_empty() || bytes.contains(&b'=') => {
                Err(usage::Error::UnsetNeedsName { given: name.clone() })
            }
            _ => Ok(EnvEdit::Unset(name.clone())),
        });
        unset.chain(self.env.iter().map(|given| set(given))).collect()
    }
}

fn set(given: &OsStr) -> Result<EnvEdit, usage::Error> {
    let mut parts = given.as_bytes().splitn(2, |byte| *byte == b'=');
    let mut part = || parts.next().map(|part| OsStr::from_bytes(part).to_owned());
    match (part(), part()) {
        (Some(name), Some(value)) if !name.is_empty() => Ok(EnvEdit::Set(name, value)),
        (_, Some(_)) => Err(usage::Error::EnvNeedsName { given: given.to_owned() }),
        (_, None) => Err(usage::Error::EnvNeedsValue { given: given.to_owned() }),
    }
}
