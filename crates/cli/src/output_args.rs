//! Which part of the output a command is about.

use lastbyte_client::wire::Stream;

use crate::in_words;

/// A choice of what a process and its survivors have written.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// Only this one of two streams that are kept apart: stdout or stderr
    #[arg(long, value_parser = in_words::parse_stream)]
    pub(crate) stream: Option<Stream>,

    /// Also what survivors write after the end
    #[arg(long)]
    pub(crate) late: bool,
}
