//! `lastbyte doctor`: what this machine offers and what lastbyte makes of it.

use crate::doctor::Diagnosis;
use crate::state_folder::StateFolder;
use crate::tell;

/// Say what this machine offers and what lastbyte makes of it
///
/// Everything is found out by trying it, as lastbyte itself would when it runs a command. The exit
/// code is 0 when commands can be run here, and 1 when something that they need is missing.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write it as JSON
    #[arg(long)]
    json: bool,
}

/// Returns the exit code.
pub(crate) fn run(args: &Args) -> anyhow::Result<u8> {
    let folder = StateFolder::create()?;
    let diagnosis = Diagnosis::of_this_machine(folder.path());
    match args.json {
        true => tell::result(format!("{}\n", serde_json::to_string_pretty(&diagnosis)?))?,
        false => tell::result(diagnosis.to_string())?,
    }
    Ok(u8::from(!diagnosis.can_run()))
}
