//! What a command that is started has to be typed on.

use lastbyte_client::wire::{Stdin, Tty};

use crate::{size, terminal};

/// The terminal and the input of a command.
#[derive(Debug, clap::Args)]
pub(crate) struct TerminalArgs {
    /// Run the command on a terminal of this size, like 24x80
    #[arg(long, value_name = "ROWSxCOLS", value_parser = size::parse_tty)]
    tty: Option<Tty>,

    /// Let the command read what `lastbyte write` and `lastbyte attach` send it
    #[arg(long)]
    stdin_open: bool,

    /// Run the command on a terminal that `lastbyte attach` can type on: --stdin-open, and --tty of
    /// the size of ours unless given
    #[arg(short, long, conflicts_with = "split")]
    interactive: bool,

    /// As --interactive, and attach at once, from the first byte of the output; the exit code is that
    /// of `lastbyte attach`
    #[arg(long, conflicts_with_all = ["split", "json"])]
    pub(crate) attach: bool,
}

impl TerminalArgs {
    pub(crate) fn tty(&self) -> Option<Tty> {
        let own = || {
            let size = terminal::size();
            Tty { rows: size.rows, cols: size.cols }
        };
        self.tty.or_else(|| self.is_interactive().then(own))
    }

    pub(crate) fn stdin(&self) -> Option<Stdin> {
        (self.stdin_open || self.is_interactive()).then_some(Stdin::Open)
    }

    pub(crate) fn is_interactive(&self) -> bool {
        self.interactive || self.attach
    }
}
