//! `lastbyte run`: a command in the foreground, without a daemon.

use anyhow::Context;
use lastbyte_engine::{
    Ending, Engine, Launch, OnQuota, OrphanReaper, Process, Settings, Stdin, StopPolicy, Streams,
    Survivors, Timeouts,
};
use lastbyte_output::log::Quota;
use lastbyte_server::to_wire;
use tokio::runtime::Builder;

use crate::attend::attend;
use crate::exit_code::help::{self, Code};
use crate::launch_args::LaunchArgs;
use crate::sandbox_args::tell_if_external;
use crate::signals::Signals;
use crate::state_folder::StateFolder;
use crate::{exit_code, feed, own_streams, places, size, summary, tell, terminal, usage};

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
#[command(verbatim_doc_comment, after_help = exit_codes(), override_usage = USAGE)]
pub(crate) struct Args {
    #[command(flatten)]
    launch: LaunchArgs,

    /// Run the command on a terminal of its own, which is ours passed through: every key goes to
    /// it, Ctrl-C too, and it follows the size of ours
    #[arg(long)]
    tty: bool,

    /// Let the command wait when this much of its output is unread, like 64MiB (the default)
    #[arg(long, value_name = "SIZE", value_parser = size::parse_quota, allow_hyphen_values = true)]
    quota: Option<Quota>,

    /// At the end, say in a line on standard error how it went
    #[arg(long)]
    summary: bool,

    /// At the end, write the process as the API shows it, a line of JSON, the last on standard error
    #[arg(long)]
    json: bool,
}

const USAGE: &str = "lastbyte run [OPTIONS] 'SHELL TEXT'
       lastbyte run [OPTIONS] -- PROGRAM [ARGUMENT]...";

fn exit_codes() -> String {
    help::list([
        (Code::OfCommand, "the command's own exit code"),
        help::SENSELESS,
        help::OUT_OF_TIME,
        (
            Code::Is(exit_code::OWN_FAILURE),
            "lastbyte itself failed: no such directory, no place for its files, output not written",
        ),
        help::CANNOT_BE_RUN,
        help::NO_PROGRAM,
        (
            Code::OfSignal,
            "the command was ended by signal N: 130 for SIGINT, 137 for SIGKILL, 143 for SIGTERM",
        ),
    ])
}

/// Returns the exit code.
pub(crate) fn run(args: &Args) -> anyhow::Result<u8> {
    let launch = args.launch()?;
    tell_if_external(Some(&launch.sandbox));
    lastbyte_sys::own_signals::get_ready_for_children();
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
        let settings =
            Settings { spawners: 1, hidden: places::hidden(), ..Settings::new(folder.path()) };
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
        self.report(&process, &finished.ending).await;
        Ok(code)
    }

    /// What is to be said at the end.
    async fn report(&self, process: &Process, ending: &Ending) {
        if process.about().sandbox.denied(ending.status) {
            tell::line("the sandbox ended the command");
        }
        let left = summary::still_running(process, ending).await;
        if let Some(left) = &left {
            tell::line(left);
        }
        if self.summary {
            tell::line(summary::Summary { ending, left: left.as_ref() });
        }
        if self.json {
            tell::json(&to_wire::process(process.about(), &process.snapshot()));
        }
    }

    fn launch(&self) -> anyhow::Result<Launch> {
        Ok(Launch {
            cwd: Some(self.launch.directory()),
            env: self.launch.env_edits()?,
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
                signal: self.launch.stop_signal.unwrap_or(StopPolicy::default().signal),
                grace: self.launch.grace.unwrap_or(StopPolicy::default().grace),
            },
            quota: self.quota.unwrap_or(Quota::DEFAULT),
            timeouts: Timeouts { wall: self.launch.timeout, idle: self.launch.idle_timeout },
            // Nothing is dropped, however slow the reader of our output is: the command waits.
            on_quota: OnQuota::Block,
            sandbox: self.launch.sandbox.sandbox()?.unwrap_or_default(),
            ..Launch::new(self.launch.program(usage::Verb::Run)?)
        })
    }
}
