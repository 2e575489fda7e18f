//! `lastbyte cli-doc`: the page docs/cli.md, for `cargo xtask cli-doc`.

use std::fmt::Write;

use clap::Command;

use crate::tell;

/// Print the help of all commands as one page
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

const BEGINNING: &str = "\
# The command line

The help of every command, written by `cargo xtask cli-doc`. What each option can be set by besides its
flag is in [configuration.md](configuration.md).
";

/// Returns the exit code.
pub(crate) fn run(_: &Args, mut program: Command) -> anyhow::Result<u8> {
    // Gives each command its full name.
    program.build();
    let mut page = BEGINNING.to_owned();
    describe(&mut program, "lastbyte", &mut page)?;
    tell::result(page)?;
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
    for below in command.get_subcommands_mut().filter(|below| !below.is_hide_set()) {
        let name = format!("{name} {}", below.get_name());
        describe(below, &name, page)?;
    }
    Ok(())
}
