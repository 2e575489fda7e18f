//! `lastbyte man`: manual pages.

use std::path::PathBuf;

use anyhow::Context;

use crate::exit_code::help;

/// Write a manual page for each command into a folder
///
/// `lastbyte man ~/.local/share/man/man1` is where `man lastbyte-start` looks for them.
#[derive(Debug, clap::Args)]
#[command(after_help = help::of_writing())]
pub(crate) struct Args {
    /// Made if it is missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Returns the exit code.
pub(crate) fn run(args: &Args, program: clap::Command) -> anyhow::Result<u8> {
    let folder = &args.folder;
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(program.disable_help_subcommand(true), folder));
    written.with_context(|| format!("cannot write manual pages into {}", folder.display()))?;
    Ok(0)
}
