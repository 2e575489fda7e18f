//! `lastbyte run`: a command in the foreground, without a daemon.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use lastbyte_engine::{
    Engine, EnvEdit, Launch, OnQuota, OrphanReaper, Program, Settings, Signal, Stdin, StopPolicy,
    Streams, Survivors, Timeouts,
};
use lastbyte_output::log::Quota;
use tokio::runtime::Builder;

use crate::attend::attend;
use crate::signals::Signals;
use crate::state_folder::StateFolder;
use crate::{duration, exit_code, feed, own_streams, report, size, summary, tell, terminal, usage};

/// Run a command and wait for its end
///
/// The command is one shell text, run by `sh -c`, or a program and its arguments after `--`.
///
/// Its output appears as it comes: standard output on standard output, standard error on
/// standard error. The exit code is the command's own. A background process that the command
/// leaves behind is not waited for and goes on running.
///
/// Standard input is passed on to the command unless it is a terminal. It is read ahead of the
/// command, so give a command in a loop that reads the same input its own: `</dev/null`.
///
/// The command runs in a session of its own. SIGINT (Ctrl-C), SIGTERM, SIGHUP and SIGQUIT are
/// passed on to it; the second one kills it with everything it has started. A signal that was
/// ignored when lastbyte started, as under nohup, stays ignored.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_help = exit_code::HELP, override_usage = USAGE)]
pub(crate) struct Args {
    /// Exactly one; more are taken only to say what is wrong.
    #[arg(hide = true)]
    text: Vec<OsString>,

    /// What follows `--`.
    #[arg(hide = true, last = true)]
    argv: Vec<OsString>,

    /// Stop the command when it has run this long, like 500ms, 2s, 1.5m or 1h
    #[arg(long, value_name = "TIME", value_parser = duration::parse, allow_hyphen_values = true)]
    timeout: Option<Duration>,

    /// Stop the command when it has written nothing for this long
    #[arg(long, value_name = "TIME", value_parser = duration::parse, allow_hyphen_values = true)]
    idle_timeout: Option<Duration>,

    /// Run the command in this directory instead of the current one
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Set an environment variable; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<OsString>,

    /// Remove an environment variable; can be repeated, and --env wins over it
    #[arg(long, value_name = "NAME")]
    unset: Vec<OsString>,

    /// Run the command on a terminal of its own, which is ours passed through: every key goes to
    /// it, Ctrl-C too, and it follows the size of ours
    #[arg(long)]
    tty: bool,

    /// Let the command wait when this much of its output is unread, like 64MiB (the default)
    #[arg(long, value_name = "SIZE", value_parser = size::parse_quota, allow_hyphen_values = true)]
    quota: Option<Quota>,

    /// Stop the command with this signal when it runs out of time; TERM unless given
    #[arg(long, value_name = "SIGNAL", allow_hyphen_values = true)]
    stop_signal: Option<Signal>,

    /// Kill it with all it has started this long after that signal; 5s unless given, 0s at once
    #[arg(long, value_name = "TIME", value_parser = duration::parse_or_zero, allow_hyphen_values = true)]
    grace: Option<Duration>,

    /// At the end, say in a line on standard error how it went
    #[arg(long)]
    summary: bool,

    /// At the end, write all that is known of it as a line of JSON, the last on standard error
    #[arg(long)]
    json: bool,
}

const USAGE: &str = "lastbyte run [OPTIONS] 'SHELL TEXT'
       lastbyte run [OPTIONS] -- PROGRAM [ARGUMENT]...";

/// Returns the exit code.
pub(crate) fn run(args: &Args) -> anyhow::Result<u8> {
    let launch = args.launch()?;
    lastbyte_sys::own_signals::unblock_all();
    lastbyte_sys::own_signals::keep_exit_statuses();
    lastbyte_sys::own_signals::survive_file_size_limit();
    // The engine's tasks fit one thread; what blocks has threads of its own.
    let runtime =
        Builder::new_current_thread().enable_all().build().context("cannot start the runtime")?;
    let listening = runtime.enter();
    // Before anything exists that a deadly signal would leave behind.
    let mut signals = Signals::listen().context("cannot listen for signals")?;
    drop(listening);
    let folder = StateFolder::create()?;
    let code = runtime.block_on(args.carry_out(launch, &folder, &mut signals));
    // Nobody waits for a look at /proc that is still under way.
    runtime.shutdown_background();
    code
}

impl Args {
    async fn carry_out(
        &self,
        launch: Launch,
        folder: &StateFolder,
        signals: &mut Signals,
    ) -> anyhow::Result<u8> {
        let settings = Settings { spawners: 1, ..Settings::new(folder.path()) };
        let engine = Engine::new(settings).context("cannot start the engine")?;
        // Nothing that the command starts can leave its tree, and no zombie of it stays.
        let _reaper = OrphanReaper::start().context("cannot adopt orphans")?;
        let streams = launch.streams;
        let started = engine.start(launch).await?;
        for warning in started.warnings {
            tell::line(format_args!("warning: {warning}"));
        }
        let process = started.process;
        feed::start(&process).context("cannot start a thread for standard input")?;
        // Put back before anything is said, and whatever attending comes to.
        let raw = matches!(streams, Streams::Pty(_)).then(terminal::Raw::enter);
        let finished = attend(&process, streams, signals).await;
        drop(raw);
        let finished = finished?;
        let code = finished.exit_code().unwrap_or_else(|error| {
            tell::line(format_args!("{error:#}"));
            exit_code::OWN_FAILURE
        });
        // Waits for a stop that has not come to its end yet.
        engine.close(Survivors::Leave).await;
        let left = summary::still_running(&process, &finished.ending).await;
        if let Some(left) = &left {
            tell::line(left);
        }
        if self.summary {
            tell::line(summary::Summary { ending: &finished.ending, left: left.as_ref() });
        }
        if self.json {
            tell::json(&report::Report::new(process.about(), &finished.ending));
        }
        Ok(code)
    }

    fn launch(&self) -> anyhow::Result<Launch> {
        Ok(Launch {
            cwd: Some(self.directory()),
            env: self.env_edits()?,
            stdin: match own_streams::stdin_is_a_terminal() && !self.tty {
                true => Stdin::Closed,
                false => Stdin::Open,
            },
            streams: match own_streams::are_the_same_file() {
                _ if self.tty => Streams::Pty(terminal::size()),
                true => Streams::Merged,
                false => Streams::Split,
            },
            stop: StopPolicy {
                signal: self.stop_signal.unwrap_or(StopPolicy::default().signal),
                grace: self.grace.unwrap_or(StopPolicy::default().grace),
            },
            quota: self.quota.unwrap_or(Quota::DEFAULT),
            timeouts: Timeouts { wall: self.timeout, idle: self.idle_timeout },
            // Nothing is dropped, however slow the reader of our output is: the command waits.
            on_quota: OnQuota::Block,
            ..Launch::new(self.program()?)
        })
    }

    /// One shell text, or words after `--`.
    fn program(&self) -> Result<Program, usage::Error> {
        match (self.text.as_slice(), self.argv.as_slice()) {
            ([], []) => Err(usage::Error::NoCommand),
            ([_, ..], [_, ..]) => Err(usage::Error::TwoCommands),
            ([text], []) if text.is_empty() => Err(usage::Error::EmptyText),
            ([], [program, ..]) if program.is_empty() => Err(usage::Error::EmptyProgram),
            ([text], []) => Ok(Program::Shell(text.clone())),
            ([], argv) => Ok(Program::Argv(argv.to_vec())),
            (words, []) => Err(usage::Error::NotQuoted { words: words.to_vec() }),
        }
    }

    fn directory(&self) -> PathBuf {
        // A directory that was removed has no name any more, but is still the current one.
        let current = env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        match &self.cwd {
            Some(cwd) => current.join(cwd),
            None => current,
        }
    }

    fn env_edits(&self) -> Result<Vec<EnvEdit>, usage::Error> {
        let unset = self.unset.iter().map(|name| match name.as_bytes() {
            [] => Err(usage::Error::UnsetNeedsName { given: name.clone() }),
            bytes if bytes.contains(&b'=') => {
                Err(usage::Error::UnsetNeedsName { given: name.clone() })
            }
            _ => Ok(EnvEdit::Unset(name.clone())),
        });
        unset.chain(self.env.iter().map(|given| set(given))).collect()
    }
}

fn set(given: &OsStr) -> Result<EnvEdit, usage::Error> {
    let bytes = given.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        None | Some(0) => Err(usage::Error::EnvNeedsValue { given: given.to_owned() }),
        Some(at) => {
            let part = |bytes| OsStr::from_bytes(bytes).to_owned();
            Ok(EnvEdit::Set(part(&bytes[..at]), part(&bytes[at + 1..])))
        }
    }
}
