//! The commands, one file each, and which of them was called.

mod app_server;
mod attach;
mod complete;
pub(crate) mod config;
mod doctor;
mod drain;
mod events;
mod exec_server;
mod forget;
mod generate;
mod logs;
mod mcp;
mod nodes;
mod open;
mod ps;
mod run;
mod screen;
mod search;
mod serve;
mod show;
mod shutdown;
mod signal;
mod start;
mod stop;
mod token;
mod upgrade;
mod wait;
mod write;

use anyhow::Context;
use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, Parser};
use lastbyte_keeper::Joined;
use tokio::runtime::Builder;

use crate::colour::{self, When};
use crate::daemon::upgrade::own_versions;
use crate::signals::Signals;
use crate::{client_error, exit_code, print, usage, wrap};

/// Process server for coding agents: when lastbyte says a process has ended, you have all its output
#[derive(Debug, Parser)]
#[command(name = "lastbyte", version, long_version = env!("LASTBYTE_LONG_VERSION"))]
struct Cli {
    #[command(subcommand)]
    command: Subcommand,
}

#[derive(Debug, clap::Subcommand)]
enum Subcommand {
    Run(Box<run::Args>),
    Serve(serve::Args),
    Start(Box<start::Args>),
    Ps(ps::Args),
    Show(show::Args),
    Logs(logs::Args),
    Search(search::Args),
    Screen(screen::Args),
    Wait(wait::Args),
    Attach(attach::Args),
    Open(open::Args),
    Write(write::Args),
    Signal(signal::Args),
    Stop(stop::Args),
    Forget(forget::Args),
    Events(events::Args),
    Nodes(nodes::Args),
    Drain(drain::Args),
    Upgrade(upgrade::Args),
    Token(token::Args),
    Shutdown(shutdown::Args),
    AppServer(app_server::Args),
    Mcp(mcp::Args),
    ExecServer(exec_server::Args),
    Config(config::Args),
    Doctor(doctor::Args),
    Completions(generate::CompletionsArgs),
    Man(generate::ManArgs),
    #[command(hide = true)]
    Complete(complete::Args),
    /// Print the help of all commands as one page
    #[command(hide = true)]
    CliDoc,
    /// Perform one operation on files for an exec-server
    #[command(hide = true)]
    FileHelper,
    /// Print by what a server knows whether this program can take over from it
    #[command(hide = true)]
    WorkerVersion,
}

/// The commands that print in colours, and so take `--color` themselves. Every command takes it before
/// its name. After `run` or `start` it could be an option of the command to run.
const COLOURED: [&str; 6] = ["ps", "show", "screen", "stop", "events", "doctor"];

fn program() -> Command {
    let with_color = |command: Command| {
        if COLOURED.contains(&command.get_name()) { command.arg(colour::option()) } else { command }
    };
    Cli::command().arg(colour::option()).mut_subcommands(with_color)
}

/// Runs the command that was called; returns the exit code. A worker of a server has joined its
/// keeper.
pub(crate) fn run(joined: Option<Joined>) -> u8 {
    let call = match program().try_get_matches_from(usage::own_args()) {
        Ok(call) => call,
        Err(error) => return usage::explain(with_wrapped_help(error), &program()),
    };
    let result = with_settings(call).and_then(|command| dispatch(command, joined));
    result.unwrap_or_else(|error| {
        print::message(client_error::to_text(&error));
        exit_code::from_error(&error)
    })
}

/// The same, with help that fits on the terminal. Parsed again, so that calls that need no help do not
/// prepare it.
fn with_wrapped_help(error: clap::Error) -> clap::Error {
    let again = wrap::help(program()).try_get_matches_from(usage::own_args());
    again.err().unwrap_or(error)
}

fn with_settings(call: ArgMatches) -> anyhow::Result<Subcommand> {
    let call = crate::config::fill(program(), call)?;
    let given = call.subcommand().and_then(|(_, below)| colour::given(below));
    colour::choose(given.or(colour::given(&call)).unwrap_or(When::Auto));
    Ok(Cli::from_arg_matches(&call)?.command)
}

fn dispatch(command: Subcommand, joined: Option<Joined>) -> anyhow::Result<u8> {
    match command {
        Subcommand::Run(args) => run::run(&args),
        Subcommand::Serve(args) => serve::run(&args, joined),
        Subcommand::Start(args) => asking(start::run(&args)),
        Subcommand::Ps(args) => asking(ps::run(&args)),
        Subcommand::Show(args) => asking(show::run(&args)),
        Subcommand::Logs(args) => asking(logs::run(&args)),
        Subcommand::Search(args) => asking(search::run(&args)),
        Subcommand::Screen(args) => asking(screen::run(&args)),
        Subcommand::Wait(args) => asking(wait::run(&args)),
        Subcommand::Attach(args) => asking(attach::run(&args)),
        Subcommand::Open(args) => asking(open::run(&args)),
        Subcommand::Write(args) => asking(write::run(&args)),
        Subcommand::Signal(args) => asking(signal::run(&args)),
        Subcommand::Stop(args) => asking(stop::run(&args)),
        Subcommand::Forget(args) => asking(forget::run(&args)),
        Subcommand::Events(args) => asking(events::run(&args)),
        Subcommand::Nodes(args) => asking(nodes::run(&args)),
        Subcommand::Drain(args) => asking(drain::run(&args)),
        Subcommand::Upgrade(args) => asking(upgrade::run(&args)),
        Subcommand::Token(args) => asking(token::run(&args)),
        Subcommand::Shutdown(args) => asking(shutdown::run(&args)),
        Subcommand::AppServer(args) => app_server::run(&args),
        Subcommand::Mcp(args) => asking(mcp::run(args)),
        Subcommand::ExecServer(args) => exec_server::run(&args),
        Subcommand::Config(args) => config::run(&args),
        Subcommand::Doctor(args) => doctor::run(&args),
        Subcommand::Completions(args) => generate::completions(&args, program()),
        Subcommand::Complete(args) => asking(complete::run(&args)),
        Subcommand::Man(args) => generate::man(&args, program()),
        Subcommand::CliDoc => generate::cli_doc(program()),
        Subcommand::FileHelper => exec_server::file_helper(),
        Subcommand::WorkerVersion => print::result(own_versions()).map(|()| 0),
    }
}

/// Runs a command that has an engine of its own. Signals are heard before anything exists that a deadly
/// one would leave behind.
pub(crate) fn with_signals<T>(
    mut runtime: Builder,
    command: impl AsyncFnOnce(&mut Signals) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let runtime = runtime.enable_all().build().context("cannot start the runtime")?;
    let result = runtime.block_on(async { command(&mut Signals::listen()?).await });
    // Does not wait for a scan of /proc or a read of standard input in progress.
    runtime.shutdown_background();
    result
}

/// Runs a command that asks a server.
fn asking(command: impl Future<Output = anyhow::Result<u8>>) -> anyhow::Result<u8> {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(command)
}
