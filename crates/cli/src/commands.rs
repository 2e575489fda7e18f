//! The commands, one file each, and which of them was called.

mod app_server;
mod attach;
mod config;
mod doctor;
mod events;
mod forget;
mod generate;
mod logs;
mod ps;
mod run;
mod search;
mod serve;
mod show;
mod shutdown;
mod signal;
mod start;
mod stop;
mod wait;
mod write;

use anyhow::Context;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};

use crate::{client_error, exit_code, print, usage};

/// Process server for coding agents: when lastbyte says a process has ended, you have all its output
#[derive(Debug, Parser)]
#[command(name = "lastbyte", version, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Run(Box<run::Args>),
    Serve(serve::Args),
    Start(Box<start::Args>),
    Ps(ps::Args),
    Show(show::Args),
    Logs(logs::Args),
    Search(search::Args),
    Wait(wait::Args),
    Attach(attach::Args),
    Write(write::Args),
    Signal(signal::Args),
    Stop(stop::Args),
    Forget(forget::Args),
    Events(events::Args),
    Shutdown(shutdown::Args),
    AppServer(app_server::Args),
    Config(config::Args),
    Doctor(doctor::Args),
    Completions(generate::CompletionsArgs),
    Man(generate::ManArgs),
    /// Print the help of all commands as one page
    #[command(hide = true)]
    CliDoc,
}

/// Runs the command that was called; returns the exit code.
pub(crate) fn run() -> u8 {
    let call = match Cli::command().try_get_matches() {
        Ok(call) => call,
        Err(error) => return usage::explain(&error, &Cli::command()),
    };
    let result = with_settings(call).and_then(dispatch);
    result.unwrap_or_else(|error| {
        print::message(client_error::to_text(&error));
        exit_code::from_error(&error)
    })
}

fn with_settings(call: ArgMatches) -> anyhow::Result<Command> {
    let call = crate::config::fill(Cli::command(), call)?;
    Ok(Cli::from_arg_matches(&call)?.command)
}

fn dispatch(command: Command) -> anyhow::Result<u8> {
    match command {
        Command::Run(args) => run::run(&args),
        Command::Serve(args) => serve::run(&args),
        Command::Start(args) => asking(start::run(&args)),
        Command::Ps(args) => asking(ps::run(&args)),
        Command::Show(args) => asking(show::run(&args)),
        Command::Logs(args) => asking(logs::run(&args)),
        Command::Search(args) => asking(search::run(&args)),
        Command::Wait(args) => asking(wait::run(&args)),
        Command::Attach(args) => asking(attach::run(&args)),
        Command::Write(args) => asking(write::run(&args)),
        Command::Signal(args) => asking(signal::run(&args)),
        Command::Stop(args) => asking(stop::run(&args)),
        Command::Forget(args) => asking(forget::run(&args)),
        Command::Events(args) => asking(events::run(&args)),
        Command::Shutdown(args) => asking(shutdown::run(&args)),
        Command::AppServer(args) => app_server::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Completions(args) => generate::completions(&args, Cli::command()),
        Command::Man(args) => generate::man(&args, Cli::command()),
        Command::CliDoc => generate::cli_doc(Cli::command()),
    }
}

fn asking(command: impl Future<Output = anyhow::Result<u8>>) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(command)
}
