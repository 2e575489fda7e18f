//! Which process a command is about.

use lastbyte_client::Client;

use crate::process_id;
use crate::server_args::ServerArgs;

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
        let client = self.server.client().await?;
        let id = process_id::find(&client, &self.id).await?;
        Ok((client, id))
    }
}
