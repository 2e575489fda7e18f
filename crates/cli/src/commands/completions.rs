//! `lastbyte completions`: what a shell needs to complete the command line.

use clap_complete::Shell;

use crate::exit_code::help;
use crate::tell;

/// Print completions for a shell
///
/// bash: put `source <(lastbyte completions bash)` into ~/.bashrc
/// zsh:  put `source <(lastbyte completions zsh)` into ~/.zshrc, behind compinit
/// fish: write them to ~/.config/fish/completions/lastbyte.fish
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_help = help::of_writing())]
pub(crate) struct Args {
    shell: Kind,
}

/// Of those that clap knows, the ones in use where lastbyte runs.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Kind {
    Bash,
    Zsh,
    Fish,
}

/// Returns the exit code.
pub(crate) fn run(args: &Args, mut program: clap::Command) -> anyhow::Result<u8> {
    let shell = match args.shell {
        Kind::Bash => Shell::Bash,
        Kind::Zsh => Shell::Zsh,
        Kind::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, "lastbyte", &mut script);
    tell::result(script)?;
    Ok(0)
}
