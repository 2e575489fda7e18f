//! One call of the program: which command, and what comes of it.

use anyhow::Context;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser};

use crate::commands::{
    app_server, attach, cli_doc, completions, config, doctor, events, forget, logs, man, ps, run,
    search, serve, show, shutdown, signal, start, stop, wait, write,
};
use crate::{client_error, exit_code, tell, usage};

/// Runs commands and tells the truth about them: whoever sees one as ended has its last byte.
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
    Completions(completions::Args),
    Man(man::Args),
    #[command(hide = true)]
    CliDoc(cli_doc::Args),
}

/// The whole program; returns its exit code.
pub(crate) fn main() -> u8 {
    let call = match Cli::command().try_get_matches() {
        Ok(call) => call,
        Err(error) => return usage::explain(&error, &Cli::command()),
    };
    let result = with_settings(call).and_then(run);
    result.unwrap_or_else(|error| {
        tell::line(client_error::in_words(&error));
        exit_code::of_error(&error)
    })
}

fn with_settings(call: ArgMatches) -> anyhow::Result<Command> {
    let call = crate::config::fill(Cli::command(), call)?;
    Ok(Cli::from_arg_matches(&call)?.command)
}

fn run(command: Command) -> anyhow::Result<u8> {
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
        Command::Completions(args) => completions::run(&args, Cli::command()),
        Command::Man(args) => man::run(&args, Cli::command()),
        Command::CliDoc(args) => cli_doc::run(&args, Cli::command()),
    }
}

fn asking(command: impl Future<Output = anyhow::Result<u8>>) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(command)
}
