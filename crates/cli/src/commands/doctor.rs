//! `lastbyte doctor`: what this machine offers and what lastbyte makes of it.

use crate::doctor::Diagnosis;
use crate::exit_code::help::{self, Code};
use crate::state_folder::StateFolder;
use crate::{exit_code, tell};

/// Say what this machine offers and what lastbyte makes of it
///
/// Everything is found out by trying it, as lastbyte itself would when it runs a command. The exit
/// code is 0 when commands can be run here, and 1 when something that they need is missing.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    /// Write it as JSON
    #[arg(long)]
    json: bool,
}

fn exit_codes() -> String {
    help::list([
        (Code::Is(0), "commands can be run here"),
        (Code::Is(exit_code::NOT_MET), "something that they need is missing"),
        help::SENSELESS,
        (
            Code::Is(exit_code::OWN_FAILURE),
            "lastbyte itself failed: no place for its files, output not written",
        ),
    ])
}

/// Returns the exit code.
pub(crate) fn run(args: &Args) -> anyhow::Result<u8> {
    let folder = StateFolder::create()?;
    let diagnosis = Diagnosis::of_this_machine(folder.path());
    match args.json {
        true => tell::result(format!("{}\n", serde_json::to_string_pretty(&diagnosis)?))?,
        false => tell::result(diagnosis.to_string())?,
    }
    Ok(match diagnosis.can_run() {
        true => 0,
        false => exit_code::NOT_MET,
    })
}
