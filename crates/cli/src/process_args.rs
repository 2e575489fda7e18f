//! Which process a command is about, and which part of its output. The server finds it by whatever
//! stands for its id.

use lastbyte_client::Client;
use lastbyte_client::wire::Stream;

use crate::server_args::ServerArgs;
use crate::{autostart, format, usage};

/// How much of an id is shown. The end, since ids of the same minute begin alike.
const SHOWN: usize = 8;

/// For the help of every command that takes an id.
pub(crate) const ID_HELP: &str =
    "Process id or name, any unique prefix or suffix of an id, or `last` for the newest process";
/// The length of a whole id.
const WHOLE: usize = 36;

/// The end of an id, which every request takes.
pub(crate) fn short_id(id: &str) -> &str {
    id.get(id.len().saturating_sub(SHOWN)..).unwrap_or(id)
}

/// A process, and the server that keeps it.
#[derive(Debug, clap::Args)]
pub(crate) struct ProcessArgs {
    #[arg(help = ID_HELP)]
    id: String,

    #[command(flatten)]
    server: ServerArgs,
}

impl ProcessArgs {
    /// The server, and the whole id of the process that is meant.
    pub(crate) async fn find(&self) -> anyhow::Result<(Client, String)> {
        self.check()?;
        self.find_by(self.server.client().await?).await
    }

    /// The same for a process that an earlier server may have left.
    pub(crate) async fn find_in_history(&self) -> anyhow::Result<(Client, String)> {
        self.check()?;
        self.find_by(autostart::client_of_history(&self.server).await?).await
    }

    /// Every id begins with an empty one.
    fn check(&self) -> Result<(), usage::Error> {
        if self.id.is_empty() { Err(usage::Error::EmptyId) } else { Ok(()) }
    }

    async fn find_by(&self, client: Client) -> anyhow::Result<(Client, String)> {
        let id = match self.id.len() {
            // Whether it is there, the server says when it is asked about it.
            WHOLE => self.id.clone(),
            _ => client.show(&self.id).await?.id,
        };
        Ok((client, id))
    }
}

/// A choice of what a process and its survivors have written.
#[derive(Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// Read only stdout or only stderr; without --split at the start, everything counts as stdout
    #[arg(long, value_parser = |text: &str| format::parse_word::<Stream>(text, "stdout or stderr"))]
    pub(crate) stream: Option<Stream>,

    /// Include what processes left running by it write after its end
    #[arg(long)]
    pub(crate) late: bool,
}
