//! `lastbyte forget`: an ended process and its output, removed.

use lastbyte_client::wire::ForgetQuery;

use crate::server_args::ServerArgs;
use crate::{exit_code, process_id};

/// Forget a process that has ended, with its output
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::CLIENT_HELP)]
pub(crate) struct Args {
    #[arg(help = process_id::HELP)]
    id: String,

    /// Stop it first, if anything of it lives
    #[arg(long)]
    stop: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let client = args.server.client()?;
    let id = process_id::find(&client, &args.id).await?;
    client.forget(&id, &ForgetQuery { stop: args.stop.then_some(true) }).await?;
    Ok(0)
}
