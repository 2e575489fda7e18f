//! Which process a command is about.

use lastbyte_client::Client;

use crate::server_args::ServerArgs;
use crate::{process_id, usage};

/// A process, and the server that keeps it.
#[derive(Debug, clap::Args)]
pub(crate) struct ProcessArgs {
    #[arg(help = process_id::HELP)]
    id: String,

    #[command(flatten)]
    server: ServerArgs,
}

impl ProcessArgs {
    /// The server, and the whole id of the process that is meant.
    pub(crate) async fn find(&self) -> anyhow::Result<(Client, String)> {
        // Every id begins with it.
        if self.id.is_empty() {
            return Err(usage::Error::EmptyId.into());
        }
        let client = self.server.client().await?;
        let id = process_id::find(&client, &self.id).await?;
        Ok((client, id))
    }
}
