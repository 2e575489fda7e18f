//! `lastbyte run`: a command in the foreground, without a daemon.

use std::time::Duration;

use anyhow::Context;
use lastbyte_client::wire::{self, Cause, Closing, Ending, ErrorBody};
use lastbyte_engine::{
    Engine, Launch, OnQuota, OrphanReaper, Process, Settings, Stdin, StopPolicy, Streams,
    Survivors, Timeouts,
};
use lastbyte_output::log::Quota;
use lastbyte_server::{resources, to_wire};
use tokio::runtime::Builder;

use super::with_signals;
use crate::exit_code::help::{self, Code};
use crate::launch_args::LaunchArgs;
use crate::sandbox_args::warn_if_external;
use crate::signals::Signals;
use crate::state_folder::StateFolder;
use crate::{client_error, exit_code, foreground, format, print, stdio};

/// Run a command and wait for it to end
///
/// The command is one quoted shell command, run by `sh -c`, or a program and its arguments after `--`.
///
/// Its output appears as it is written: standard output on standard output, standard error on
/// standard error. The exit code is the command's own. A background process that the command leaves
/// behind is not waited for and keeps running; its further output is discarded.
///
/// Standard input is passed on to the command unless it is a terminal. lastbyte reads ahead of the
/// command, so in a loop that reads the same input, give the command its own: `</dev/null`.
///
/// The command runs in its own session. SIGINT (Ctrl-C), SIGTERM, SIGHUP and SIGQUIT are passed on
/// to it; a second signal kills it and everything it started. A signal that was ignored when lastbyte
/// started, as under nohup, stays ignored.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes(), override_usage = USAGE)]
pub(crate) struct Args {
    #[command(flatten)]
    launch: LaunchArgs,

    /// Run the command on its own terminal, connected to yours: every key goes to the command,
    /// including Ctrl-C, and it follows the size of your window
    #[arg(long)]
    tty: bool,

    /// Print a one-line summary on standard error at the end
    #[arg(long)]
    summary: bool,

    /// Print the process as JSON, as the API shows it, as the last line on standard error; if the
    /// command cannot be started, the API's error: {"error":{"code":…,"message":…}}
    #[arg(long)]
    json: bool,
}

const USAGE: &str = "lastbyte run [OPTIONS] 'SHELL COMMAND'
       lastbyte run [OPTIONS] -- PROGRAM [ARGUMENT]...";

fn exit_codes() -> String {
    help::list([
        (Code::Command, "the command's own exit code"),
        help::INVALID_ARGS,
        help::COMMAND_TIMED_OUT,
        (
            Code::FAILURE,
            "lastbyte failed: no such directory, cannot create its state directory, cannot write output",
        ),
        help::NOT_EXECUTABLE,
        help::PROGRAM_NOT_FOUND,
        (
            Code::Signal,
            "the command was ended by signal N: 130 for SIGINT, 137 for SIGKILL, 143 for SIGTERM",
        ),
    ])
}

/// Returns the exit code.
pub(crate) fn run(args: &Args) -> anyhow::Result<u8> {
    let launch = args.launch()?;
    warn_if_external(Some(&launch.sandbox));
    lastbyte_sys::own_signals::prepare_for_children();
    // One thread is enough for the engine's tasks; blocking work has its own threads.
    with_signals(Builder::new_current_thread(), async |signals| args.execute(launch, signals).await)
}

impl Args {
    async fn execute(&self, launch: Launch, signals: &mut Signals) -> anyhow::Result<u8> {
        let folder = StateFolder::create()?;
        // Looked up only for a command that is confined: it is the only one of this engine.
        let homes = if launch.sandbox.confines() { None } else { Some(Vec::new()) };
        let settings = Settings { spawners: Some(1), homes, ..folder.settings() };
        let engine = Engine::new(settings).context("cannot prepare to run commands")?;
        // Adopts orphans, so that nothing the command starts leaves its tree or stays a zombie.
        let _reaper = OrphanReaper::start().context("cannot adopt orphans")?;
        let streams = launch.streams;
        let started = match engine.start(launch).await {
            Ok(started) => started,
            Err(error) => return self.not_started(to_wire::start_error(&error)),
        };
        for warning in started.warnings {
            print::message(format_args!("warning: {warning}"));
        }
        let process = started.process;
        foreground::pass_stdin_on(&process).context("cannot start a thread for standard input")?;
        // Restored before any message, and on errors, too.
        let raw = matches!(streams, Streams::Pty(_)).then(stdio::Raw::enter);
        let finished = foreground::run_to_end(&process, streams, signals).await;
        drop(raw);
        if finished.is_err() {
            // What it left running is left alone. If this fails, there is a worse error to tell.
            _ = process.leave_reader().await;
        }
        let finished = finished?;
        let code = finished.exit_code().unwrap_or_else(|error| {
            print::message(format_args!("{error:#}"));
            exit_code::OWN_FAILURE
        });
        // Waits for a stop in progress.
        engine.close(Survivors::Leave).await;
        self.report(&process, &finished.ending).await;
        Ok(code)
    }

    fn not_started(&self, error: wire::Error) -> anyhow::Result<u8> {
        if !self.json {
            return Err(error.into());
        }
        let code = error.code.exit_code();
        let body = ErrorBody { error };
        print::message(client_error::to_text(&body.error.clone().into()));
        print::json_message(&body);
        Ok(code)
    }

    /// What is to be said at the end.
    async fn report(&self, process: &Process, ending: &Ending) {
        if ending.sandbox_denied {
            print::message("the sandbox killed the command");
        }
        if let Some(left) = still_running(process, ending).await {
            print::message(left);
        }
        if let Some(Cause::TimedOut { which, .. }) = ending.cause
            && !self.summary
            && !self.json
        {
            print::message(self.launch.timed_out(which));
        }
        if let Some(Cause::Limit { which, .. }) = ending.cause
            && !self.summary
            && !self.json
        {
            print::message(format_args!("passed its limit of {}; stopped", which.as_str()));
        }
        if self.summary {
            print::message(summary(ending));
        }
        if self.json {
            print::json_message(&to_wire::process(process, &process.snapshot()));
        }
    }

    fn launch(&self) -> anyhow::Result<Launch> {
        Ok(Launch {
            cwd: Some(self.launch.directory()?),
            env: self.launch.env_edits()?,
            secrets: self.launch.secrets.secrets()?,
            stdin: if stdio::stdin_is_terminal() && !self.tty {
                Stdin::Closed
            } else {
                Stdin::Open
            },
            streams: match stdio::stdout_is_stderr() {
                _ if self.tty => Streams::Pty(stdio::size()),
                true => Streams::Merged,
                false => Streams::Split,
            },
            stop: StopPolicy {
                signal: self.launch.stop_signal.unwrap_or(StopPolicy::default().signal),
                grace: self.launch.grace.unwrap_or(StopPolicy::default().grace),
            },
            quota: self.launch.quota.unwrap_or(Quota::DEFAULT),
            timeouts: Timeouts { wall: self.launch.timeout, idle: self.launch.idle_timeout },
            // Nothing is dropped, however slow the reader of our output is: the command waits.
            on_quota: OnQuota::Block,
            sandbox: self.launch.sandbox.sandbox()?.unwrap_or_default(),
            resources: self.launch.limits.limits().map(resources).unwrap_or_default(),
            ..Launch::new(self.launch.program("run")?)
        })
    }
}

/// Says which processes outlive the command and hold its output open, and what becomes of it. Searches
/// for them only if something does, which is rare.
async fn still_running(process: &Process, ending: &Ending) -> Option<String> {
    // If it was held at the ending only, a stop has ended them since, or they went by themselves.
    if ending.closing == Some(Closing::Eof) || !process.snapshot().log_open {
        return None;
    }
    let left = process.survivors().await;
    let names: Vec<_> =
        left.iter().map(|left| format::name_and_pid(&left.name, left.pid)).collect();
    let who = match names.as_slice() {
        [] => "an unknown process that holds the output open".into(),
        names => names.join(", "),
    };
    let whose = if names.len() > 1 { "their" } else { "its" };
    // After the search, which would find the reader.
    let fate = match process.leave_reader().await {
        Ok(()) => "further output is discarded (`lastbyte start` keeps it)".into(),
        Err(error) => format!("next write will fail, because nothing can read it: {error}"),
    };
    Some(format!("still running: {who}; {whose} {fate}"))
}

/// How it went, in one line.
fn summary(ending: &Ending) -> String {
    let seconds = |ns| format!("{:.3}s", Duration::from_nanos(ns).as_secs_f64());
    let how = format::ending(ending);
    let ran = ending.times.ran_ns.map(|ran| format!(", after {}", seconds(ran)));
    let bytes = format::count(ending.final_len, "byte", "bytes");
    let line = format!("{how}{}; {bytes} of output", ran.unwrap_or_default());
    let Some(usage) = ending.usage else { return line };
    format!("{line}; cpu {}", format::cpu(usage))
}
