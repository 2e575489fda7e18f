//! `lastbyte start`: a command in the background, kept by the server.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::time::Duration;

use anyhow::{Context, bail};
use lastbyte_client::ClientError;
use lastbyte_client::wire::{
    self, OnDisconnect, OnTimeout, Place, Secrets, StartAnswer, StartRequest, Stdin, StopPolicy,
    StreamsAsked, Tty,
};
use lastbyte_engine::{EnvEdit, Program, Sandbox, Workspace};
use lastbyte_output::log::Quota;
use lastbyte_output::mask::Secret;
use lastbyte_server::to_wire;
use rustix::stdio::stderr;
use rustix::termios::isatty;

use super::attach::AttachArgs;
use crate::daemon::instance::ShuttingDown;
use crate::exit_code::help::{self, Code};
use crate::launch_args::LaunchArgs;
use crate::process_args::short_id;
use crate::sandbox_args::warn_if_external;
use crate::server_args::{ServerArgs, is_not_running};
use crate::{autostart, format, print, stdio, units, usage};

/// Start a command in the background and print its id
///
/// The command is one quoted shell command, run by `sh -c`, or a program and its arguments after `--`.
///
/// It runs in the current directory with your environment variables, plus those that only the server
/// has. A server that this command started has only a few: HOME, LANG, LC_*, LOGNAME, PATH, SHELL,
/// TMPDIR, TZ, USER, XDG_*.
///
/// Standard input is not passed on. With --stdin-open or a terminal, the command reads what
/// `lastbyte write` and `lastbyte attach` send it, otherwise nothing.
///
/// If no server is running, one is started and keeps running; `lastbyte shutdown` stops it.
///
/// An ended process and its output are kept for at least 10 minutes and at most 24 hours, or as
/// `lastbyte serve --keep-at-least` and `--keep-at-most` say.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes(), override_usage = USAGE)]
pub(crate) struct Args {
    #[command(flatten)]
    launch: LaunchArgs,

    #[command(flatten)]
    terminal: TerminalArgs,

    /// Keep standard output and standard error apart
    #[arg(long, conflicts_with = "tty")]
    split: bool,

    /// On timeout, stop the command (`stop`, the default) or let it keep running (`background`)
    #[arg(long, value_name = "WHAT", value_parser = |text: &str| format::parse_word::<OnTimeout>(text, "stop or background"))]
    on_timeout: Option<OnTimeout>,

    /// When no client is connected to the process any more, let it run (`keep`, the default) or stop it
    /// (`stop`). A client is connected while a connection is open over which it started the process or
    /// asked about it; so use `stop` with --attach, or where a program keeps its connection open
    #[arg(long, value_name = "WHAT", value_parser = |text: &str| format::parse_word::<OnDisconnect>(text, "keep or stop"))]
    on_disconnect: Option<OnDisconnect>,

    /// Stop the process when no client has been connected to it for this long; implies
    /// --on-disconnect stop [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration_or_zero, allow_hyphen_values = true)]
    disconnect_timeout: Option<Duration>,

    /// Make the process part of this session: a named group of processes, for `ps` and `events`
    #[arg(long, value_name = "NAME")]
    session: Option<String>,

    /// Make retries safe: a start with the same key returns the same process. If it differs in anything,
    /// even a single variable of your environment, it is refused
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Name the process, for use instead of its id; no other running process may have the name. A letter,
    /// then letters, digits, `.`, `_` and `-`
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Label the process; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_label)]
    label: Vec<(String, String)>,

    /// In a fleet: start it on this node, or on one with this label; repeatable for labels
    #[arg(long, value_name = "NODE|NAME=VALUE")]
    on: Vec<String>,

    /// In a fleet: if the node that has the key is gone, start it on another one; it may then run twice
    #[arg(long, requires = "key")]
    replace: bool,

    /// Print the server's answer as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

const USAGE: &str = "lastbyte start [OPTIONS] 'SHELL COMMAND'
       lastbyte start [OPTIONS] -- PROGRAM [ARGUMENT]...";

fn exit_codes() -> String {
    help::list([
        (Code::Command, "with --attach: the command's own exit code"),
        (Code::OK, "started; with --attach: detached, and the command keeps running"),
        help::INVALID_ARGS_OR_SETTINGS,
        help::START_UNKNOWN,
        (Code::TIMED_OUT, "with --attach: the command timed out and was stopped"),
        (Code::FAILURE, "the server cannot be started, or it refused the request"),
        help::NOT_EXECUTABLE,
        help::PROGRAM_NOT_FOUND,
        (
            Code::Signal,
            "with --attach: signal N ended the command, or lastbyte while the command keeps running",
        ),
    ])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let answer = args.start(&args.request()?).await?;
    for warning in &answer.warnings {
        print::message(format_args!("warning: {warning}"));
    }
    if args.terminal.attach {
        let client = args.server.client().await?;
        // An earlier start with this key may have shown much of the output already.
        let from = (!answer.attached).then_some(0);
        let how = AttachArgs { from, ..AttachArgs::default() };
        return how.attach(&client, &answer.process).await;
    }
    let id = &answer.process.id;
    let told = print::answer(args.json, &answer, |answer| format!("{}\n", answer.process.id));
    // It runs, and its id is needed to find it.
    told.with_context(|| format!("process {id} was started"))?;
    if args.terminal.stdin().is_none() && stdio::stdin_has_data() {
        print::message(
            "warning: standard input is not passed on to the command: use `lastbyte run`, or \
             `lastbyte start --stdin-open` and then `lastbyte write`",
        );
    }
    if args.terminal.is_interactive() && isatty(stderr()) {
        let id = short_id(id);
        print::message(format_args!("use `lastbyte attach {id}` to type on its terminal"));
    }
    Ok(0)
}

impl Args {
    async fn start(&self, request: &StartRequest) -> anyhow::Result<StartAnswer> {
        match (self.ask(request).await, self.server.place()?) {
            // It was not sent, so there is nothing to repeat.
            (Err(error), Some(place)) if needs_server(&error) => {
                let client = autostart::ensure_server(&place, &self.server).await?;
                Ok(client.start(request).await?)
            }
            (answer, _) => answer,
        }
    }

    async fn ask(&self, request: &StartRequest) -> anyhow::Result<StartAnswer> {
        Ok(self.server.client().await?.start(request).await?)
    }

    fn request(&self) -> anyhow::Result<StartRequest> {
        let (command, shell) = match self.launch.program("start")? {
            Program::Shell(line) => (None, Some(text("shell command", line)?)),
            Program::Argv(words) => {
                let words = words.into_iter().map(|word| text("argument", word));
                (Some(words.collect::<Result<_, _>>()?), None)
            }
        };
        let secrets = self.secrets()?;
        Ok(StartRequest {
            command,
            shell,
            cwd: self.directory()?,
            env: self.env(&secrets)?,
            secrets,
            stdin: self.terminal.stdin(),
            tty: self.terminal.tty(),
            streams: self.split.then_some(StreamsAsked::Split),
            timeout_ms: self.launch.timeout.map(units::ms),
            idle_timeout_ms: self.launch.idle_timeout.map(units::ms),
            on_timeout: self.on_timeout,
            on_disconnect: self.on_disconnect,
            disconnect_timeout_ms: self.disconnect_timeout.map(units::ms),
            stop: Some(StopPolicy {
                signal: self.launch.stop_signal.map(units::signal_text),
                grace_ms: self.launch.grace.map(units::ms),
            }),
            sandbox: self.sandbox()?,
            quota_bytes: self.launch.quota.map(Quota::bytes),
            limits: self.launch.limits.limits(),
            session: self.session.clone(),
            key: self.key.clone(),
            name: self.name.clone(),
            labels: self.label.iter().cloned().collect(),
            on: self.place()?,
            replace: self.replace.then_some(true),
            ..StartRequest::default()
        })
    }

    /// On other machines, the one of the node unless it is given.
    fn directory(&self) -> anyhow::Result<Option<String>> {
        if self.server.names_fleet() && !self.launch.names_directory() {
            return Ok(None);
        }
        Ok(Some(text("directory", self.launch.directory()?.into_os_string())?))
    }

    fn place(&self) -> Result<Option<Place>, usage::Error> {
        match &self.on[..] {
            [] => Ok(None),
            [node] if !node.contains('=') => {
                Ok(Some(Place { node: Some(node.clone()), ..Place::default() }))
            }
            labels => {
                let labels = labels.iter().map(|label| parse_label(label));
                let labels = labels.collect::<Result<_, _>>();
                let labels = labels.map_err(|_| usage::Error::NodeAndLabels)?;
                Ok(Some(Place { labels, ..Place::default() }))
            }
        }
    }

    /// The server's default unless it is given.
    fn sandbox(&self) -> Result<Option<wire::Sandbox>, usage::Error> {
        let sandbox = self.launch.sandbox.sandbox()?;
        warn_if_external(sandbox.as_ref());
        if let Some(Sandbox::WorkspaceWrite(Workspace { roots, protect, .. })) = &sandbox {
            for path in roots.iter().chain(protect) {
                text("directory", path.clone().into_os_string())?;
            }
        }
        Ok(sandbox.as_ref().map(to_wire::sandbox))
    }

    fn secrets(&self) -> anyhow::Result<Secrets> {
        let secret = |secret: Secret| {
            let Ok(value) = String::from_utf8(secret.value().to_vec()) else {
                bail!("the secret {} is not UTF-8", secret.name())
            };
            Ok((secret.name().to_owned(), value))
        };
        let secrets = self.launch.secrets.secrets()?.into_iter();
        secrets.map(secret).collect::<Result<_, _>>().map(Secrets)
    }

    /// The caller's variables but the secrets, and the edits over them. On other machines, the edits
    /// alone.
    fn env(&self, secrets: &Secrets) -> anyhow::Result<BTreeMap<String, Option<String>>> {
        let mut env = BTreeMap::new();
        let own = (!self.server.names_fleet()).then(std::env::vars_os);
        for (name, value) in own.into_iter().flatten() {
            if name.to_str().is_some_and(|name| secrets.0.contains_key(name)) {
                continue;
            }
            match (name.to_str(), value.to_str()) {
                (Some(name), Some(value)) => {
                    env.insert(name.to_owned(), Some(value.to_owned()));
                }
                _ => print::message(format_args!(
                    "warning: environment variable {name:?} is not UTF-8 and is not passed on"
                )),
            }
        }
        for edit in self.launch.env_edits()? {
            match edit {
                EnvEdit::Set(name, value) => {
                    env.insert(text("variable name", name)?, Some(text("variable value", value)?))
                }
                EnvEdit::Unset(name) => env.insert(text("variable name", name)?, None),
            };
        }
        Ok(env)
    }
}

fn needs_server(error: &anyhow::Error) -> bool {
    error.is::<ShuttingDown>()
        || error.downcast_ref().is_some_and(|error| is_not_running(error) || is_in_no_folder(error))
}

/// Starting a server says what is wrong with the state directory.
fn is_in_no_folder(error: &ClientError) -> bool {
    matches!(error, ClientError::Connect { source, .. } if source.kind() == io::ErrorKind::NotADirectory)
}

fn text(what: &'static str, given: OsString) -> Result<String, usage::Error> {
    given.into_string().map_err(|given| usage::Error::NotText { what, given })
}

fn parse_label(given: &str) -> Result<(String, String), String> {
    match given.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".into()),
    }
}

/// The terminal and the input of a command.
#[derive(Debug, clap::Args)]
struct TerminalArgs {
    /// Run the command on a terminal of this size, like 24x80. Its standard input is the terminal, too:
    /// `lastbyte write` and `lastbyte attach` type on it
    #[arg(long, value_name = "ROWSxCOLS", value_parser = units::parse_tty)]
    tty: Option<Tty>,

    /// Keep standard input open for `lastbyte write` and `lastbyte attach`, also without a terminal
    #[arg(long)]
    stdin_open: bool,

    /// Run the command on a terminal: --tty with the size of yours unless given
    #[arg(short, long, conflicts_with = "split")]
    interactive: bool,

    /// Like --interactive, and attach at once, from the first byte of output; the exit code is that of
    /// `lastbyte attach`
    #[arg(long, conflicts_with_all = ["split", "json"])]
    attach: bool,
}

impl TerminalArgs {
    fn tty(&self) -> Option<Tty> {
        let own = || {
            let size = stdio::size();
            Tty { rows: size.rows, cols: size.cols }
        };
        self.tty.or_else(|| self.is_interactive().then(own))
    }

    fn stdin(&self) -> Option<Stdin> {
        (self.stdin_open || self.tty().is_some()).then_some(Stdin::Open)
    }

    fn is_interactive(&self) -> bool {
        self.interactive || self.attach
    }
}
