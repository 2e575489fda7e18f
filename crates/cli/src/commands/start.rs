//! `lastbyte start`: a command in the background, kept by the server.

use std::collections::BTreeMap;
use std::ffi::OsString;

use anyhow::Context;
use lastbyte_client::wire::{self, OnTimeout, StartAnswer, StartRequest, StopPolicy, StreamsAsked};
use lastbyte_engine::{EnvEdit, Program, Sandbox, Workspace};
use lastbyte_output::log::Quota;
use lastbyte_server::to_wire;
use rustix::stdio::stderr;
use rustix::termios::isatty;

use super::attach;
use crate::daemon::departing::ShuttingDown;
use crate::exit_code::help::{self, Code};
use crate::launch_args::LaunchArgs;
use crate::sandbox_args::tell_if_external;
use crate::server_args::{ServerArgs, nobody_listens};
use crate::terminal_args::TerminalArgs;
use crate::{client_error, duration, exit_code, first_use, process_id, size, tell, usage};

/// Start a command in the background and print its id
///
/// The command is one shell text, run by `sh -c`, or a program and its arguments after `--`.
///
/// It runs in the current directory and with the variables of the caller. Of the server's own
/// variables it has those that the caller does not have; a server that was started by this
/// command has only a few: HOME, LANG, LC_*, LOGNAME, PATH, SHELL, TMPDIR, TZ, USER, XDG_*.
///
/// If no server is running, one is started and goes on running; `lastbyte shutdown` ends it.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_help = exit_codes(), override_usage = USAGE)]
pub(crate) struct Args {
    #[command(flatten)]
    launch: LaunchArgs,

    #[command(flatten)]
    terminal: TerminalArgs,

    /// Keep standard output and standard error apart
    #[arg(long, conflicts_with = "tty")]
    split: bool,

    /// Keep this much of its output, like 64MiB (the default); past it the middle is dropped
    #[arg(long, value_name = "SIZE", value_parser = size::parse_quota, allow_hyphen_values = true)]
    quota: Option<Quota>,

    /// What happens when its time is over: stop (the default), or background, and it runs on
    #[arg(long, value_name = "WHAT", value_parser = parse_on_timeout)]
    on_timeout: Option<OnTimeout>,

    /// The session that the process belongs to
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// A start that is repeated with the same key is the same process; one that differs in anything
    /// is refused, be it a single variable of the caller's environment
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Mark the process; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_label)]
    label: Vec<(String, String)>,

    /// Write the server's answer as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

const USAGE: &str = "lastbyte start [OPTIONS] 'SHELL TEXT'
       lastbyte start [OPTIONS] -- PROGRAM [ARGUMENT]...";

fn exit_codes() -> String {
    help::list([
        (Code::OfCommand, "--attach: the command's own exit code, when it has ended"),
        (Code::Is(0), "it is started; --attach: detached, and the command runs on"),
        help::UNUSABLE,
        (
            Code::Is(exit_code::TIMED_OUT),
            "--attach: the command was stopped because its time was over",
        ),
        (Code::Is(exit_code::OWN_FAILURE), "the server cannot be started, or it cannot do this"),
        help::CANNOT_BE_RUN,
        help::NO_PROGRAM,
        (
            Code::OfSignal,
            "--attach: the command was ended by signal N, or lastbyte was and the command runs on",
        ),
    ])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let answer = args.start(&args.request()?).await?;
    for warning in &answer.warnings {
        tell::line(format_args!("warning: {warning}"));
    }
    if args.terminal.attach {
        let client = args.server.client().await?;
        // Of one that the key had started before, somebody may have seen much already.
        let how = match answer.attached {
            true => attach::How::default(),
            false => attach::How::from_the_first_byte(),
        };
        return how.attach(&client, &answer.process).await;
    }
    let id = &answer.process.id;
    let told = match args.json {
        true => tell::json_result(&answer),
        false => tell::result(format!("{id}\n")),
    };
    // It runs, and whoever has not got its id has no other way to it.
    told.with_context(|| format!("process {id} is started"))?;
    if args.terminal.is_interactive() && isatty(stderr()) {
        let id = process_id::short(id);
        tell::line(format_args!("`lastbyte attach {id}` types on its terminal"));
    }
    Ok(0)
}

impl Args {
    async fn start(&self, request: &StartRequest) -> anyhow::Result<StartAnswer> {
        match (self.ask(request).await, self.server.place()?) {
            // It was not sent, so there is nothing to repeat.
            (Err(error), Some(place)) if nobody_takes_it(&error) => {
                let client = first_use::ensure_server(&place, &self.server).await?;
                Ok(client.start(request).await?)
            }
            (answer, _) => answer,
        }
    }

    async fn ask(&self, request: &StartRequest) -> anyhow::Result<StartAnswer> {
        Ok(self.server.client().await?.start(request).await?)
    }

    fn request(&self) -> Result<StartRequest, usage::Error> {
        let (command, shell) = match self.launch.program(usage::Verb::Start)? {
            Program::Shell(line) => (None, Some(text("a shell text", line)?)),
            Program::Argv(words) => {
                let words = words.into_iter().map(|word| text("an argument", word));
                (Some(words.collect::<Result<_, _>>()?), None)
            }
        };
        Ok(StartRequest {
            command,
            shell,
            cwd: Some(text("a directory", self.launch.directory().into_os_string())?),
            env: self.env()?,
            stdin: self.terminal.stdin(),
            tty: self.terminal.tty(),
            streams: self.split.then_some(StreamsAsked::Split),
            timeout_ms: self.launch.timeout.map(duration::ms),
            idle_timeout_ms: self.launch.idle_timeout.map(duration::ms),
            on_timeout: self.on_timeout,
            stop: Some(StopPolicy {
                signal: self.launch.stop_signal.map(|signal| signal.to_string()),
                grace_ms: self.launch.grace.map(duration::ms),
            }),
            sandbox: self.sandbox()?,
            quota_bytes: self.quota.map(Quota::bytes),
            session: self.session.clone(),
            key: self.key.clone(),
            labels: self.label.iter().cloned().collect(),
            ..StartRequest::default()
        })
    }

    /// The server's default unless it is given.
    fn sandbox(&self) -> Result<Option<wire::Sandbox>, usage::Error> {
        let sandbox = self.launch.sandbox.sandbox()?;
        tell_if_external(sandbox.as_ref());
        if let Some(Sandbox::WorkspaceWrite(Workspace { roots, protect, .. })) = &sandbox {
            for path in roots.iter().chain(protect) {
                text("a directory", path.clone().into_os_string())?;
            }
        }
        Ok(sandbox.as_ref().map(to_wire::sandbox))
    }

    /// The caller's variables, and the edits over them.
    fn env(&self) -> Result<BTreeMap<String, Option<String>>, usage::Error> {
        let mut env = BTreeMap::new();
        for (name, value) in std::env::vars_os() {
            match (name.to_str(), value.to_str()) {
                (Some(name), Some(value)) => {
                    env.insert(name.to_owned(), Some(value.to_owned()));
                }
                _ => tell::line(format_args!(
                    "warning: the variable {name:?} is not UTF-8 and is not passed on"
                )),
            }
        }
        for edit in self.launch.env_edits()? {
            match edit {
                EnvEdit::Set(name, value) => env.insert(
                    text("a variable", name)?,
                    Some(text("the value of a variable", value)?),
                ),
                EnvEdit::Unset(name) => env.insert(text("a variable", name)?, None),
            };
        }
        Ok(env)
    }
}

fn nobody_takes_it(error: &anyhow::Error) -> bool {
    error.is::<ShuttingDown>() || client_error::of(error).is_some_and(nobody_listens)
}

fn text(what: &'static str, given: OsString) -> Result<String, usage::Error> {
    given.into_string().map_err(|given| usage::Error::NotText { what, given })
}

fn parse_on_timeout(text: &str) -> Result<OnTimeout, String> {
    match text {
        "stop" => Ok(OnTimeout::Stop),
        "background" => Ok(OnTimeout::Background),
        _ => Err("it is stop or background".into()),
    }
}

fn parse_label(given: &str) -> Result<(String, String), String> {
    match given.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("a label is given as NAME=VALUE".into()),
    }
}
