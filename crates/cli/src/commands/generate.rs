//! `lastbyte completions`, `man` and the hidden `cli-doc`, which writes docs/cli.md for `cargo xtask
//! cli-doc`: what is generated from the definitions of the command line.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;

use super::complete;
use crate::exit_code::help;
use crate::{print, wrap};

/// Print shell completions
///
/// They also complete ids, names, sessions and labels of the processes that the server knows.
///
/// bash: add `source <(lastbyte completions bash)` to ~/.bashrc
/// zsh:  add `source <(lastbyte completions zsh)` to ~/.zshrc, after compinit
/// fish: save them as ~/.config/fish/completions/lastbyte.fish
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_help = help::generator_codes())]
pub(crate) struct CompletionsArgs {
    // Of those that clap knows, the ones in use where lastbyte runs.
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,
}

/// Returns the exit code.
pub(crate) fn completions(args: &CompletionsArgs, mut program: Command) -> anyhow::Result<u8> {
    let shell: Shell = args.shell.parse().map_err(anyhow::Error::msg)?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "lastbyte", &mut script);
    let script = String::from_utf8(script).context("the script is not UTF-8")?;
    print::result(complete::extend(shell, script, &program))?;
    Ok(0)
}

/// Write a manual page for each command to a directory
///
/// `lastbyte man ~/.local/share/man/man1` makes `man lastbyte-start` work.
#[derive(Debug, clap::Args)]
#[command(after_help = help::generator_codes())]
pub(crate) struct ManArgs {
    /// Directory to write to; created if missing
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Returns the exit code.
pub(crate) fn man(args: &ManArgs, program: Command) -> anyhow::Result<u8> {
    let folder = &args.folder;
    let made = std::fs::create_dir_all(folder).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => io::Error::other("it is not a directory"),
        _ => error,
    });
    let written =
        made.and_then(|()| clap_mangen::generate_to(program.disable_help_subcommand(true), folder));
    written.with_context(|| format!("cannot write manual pages to {}", folder.display()))?;
    Ok(0)
}

const BEGINNING: &str = "\
# The command line

The help of every command, written by `cargo xtask cli-doc`. What each option can be set by besides its
flag is in [configuration.md](configuration.md).
";

/// Returns the exit code.
pub(crate) fn cli_doc(program: Command) -> anyhow::Result<u8> {
    let mut program = wrap::help_for_pages(program);
    // Gives each command its full name.
    program.build();
    let mut page = BEGINNING.to_owned();
    describe(&mut program, "lastbyte", &mut page)?;
    print::result(page)?;
    Ok(0)
}

/// A command, then those below it.
fn describe(command: &mut Command, name: &str, page: &mut String) -> anyhow::Result<()> {
    let help = command.render_long_help().to_string();
    write!(page, "\n## {name}\n\n```text\n")?;
    for line in help.lines() {
        writeln!(page, "{}", line.trim_end())?;
    }
    page.push_str("```\n");
    let is_described = |below: &&mut Command| !below.is_hide_set() && below.get_name() != "help";
    for below in command.get_subcommands_mut().filter(is_described) {
        let name = format!("{name} {}", below.get_name());
        describe(below, &name, page)?;
    }
    Ok(())
}
