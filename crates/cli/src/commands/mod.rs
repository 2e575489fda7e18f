//! The commands, one file each.

mod app_server;
mod doctor;
mod run;

use clap::{CommandFactory, Parser};

use crate::{exit_code, tell, usage};

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
    Doctor(doctor::Args),
    AppServer(app_server::Args),
}

/// The whole program; returns its exit code.
pub(crate) fn main() -> u8 {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return usage::explain(&error, &Cli::command()),
    };
    let result = match command {
        Command::Run(args) => run::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::AppServer(args) => app_server::run(&args),
    };
    result.unwrap_or_else(|error| {
        tell::line(format_args!("{error:#}"));
        exit_code::of_error(&error)
    })
}
