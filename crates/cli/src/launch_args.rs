//! What to run: the options that `run` and `start` share.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use lastbyte_client::wire::TimeoutKind;
use lastbyte_engine::{EnvEdit, Program, Signal};
use lastbyte_output::log::Quota;

use crate::limit_args::LimitArgs;
use crate::sandbox_args::SandboxArgs;
use crate::secret_args::SecretArgs;
use crate::{env_file, units, usage};

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

    /// Set an environment variable; repeatable. NAME alone passes on its value here, or removes it if
    /// it has none here
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,

    /// Set the environment variables in this file; repeatable, and --env wins over it. Each line is
    /// NAME=VALUE, without quotes or expansion, or NAME alone; lines that begin with # are skipped
    #[arg(long, value_name = "FILE")]
    env_file: Vec<PathBuf>,

    /// Remove an environment variable; repeatable, and --env and --env-file win over it
    #[arg(long, value_name = "NAME")]
    unset: Vec<OsString>,

    #[command(flatten)]
    pub(crate) secrets: SecretArgs,

    /// Stop the command with this signal [default: TERM]
    #[arg(long, value_name = "SIGNAL", allow_hyphen_values = true)]
    pub(crate) stop_signal: Option<Signal>,

    /// Kill the command and everything it started this long after that signal; 0s kills at once
    /// [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration_or_zero, allow_hyphen_values = true)]
    pub(crate) grace: Option<Duration>,

    /// Keep at most this much output, like 64MiB. Beyond it, `run` pauses the command until its output is
    /// read, and `start` drops the middle [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = units::parse_quota, allow_hyphen_values = true)]
    pub(crate) quota: Option<Quota>,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,

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

    /// Whether the directory is given.
    pub(crate) fn names_directory(&self) -> bool {
        self.cwd.is_some()
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

    pub(crate) fn env_edits(&self) -> anyhow::Result<Vec<EnvEdit>> {
        let mut edits = Vec::new();
        for name in &self.unset {
            match name.as_bytes() {
                bytes if bytes.is_empty() || bytes.contains(&b'=') => {
                    bail!(usage::Error::UnsetNeedsName { given: name.clone() })
                }
                _ => edits.push(EnvEdit::Unset(name.clone())),
            }
        }
        for file in &self.env_file {
            edits.extend(env_file::read(file)?);
        }
        for given in &self.env {
            let needs_name = || usage::Error::EnvNeedsName { given: given.clone() };
            edits.push(env_file::parse(given.as_bytes()).ok_or_else(needs_name)?);
        }
        Ok(edits)
    }
}
