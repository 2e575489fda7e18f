//! `lastbyte forget`: an ended process and its output, removed.

use lastbyte_client::wire::ForgetQuery;

use crate::server_args::ServerArgs;
use crate::{exit_code, process_id, tell};

/// Forget a process that has ended, with its output
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::CLIENT_HELP)]
pub(crate) struct Args {
    #[arg(help = process_id::HELP)]
    id: String,

    /// Stop it first, if anything of it lives
    #[arg(long)]
    stop: bool,

    /// Write the id of what was forgotten as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    server: ServerArgs,
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let client = args.server.client().await?;
    let id = process_id::find(&client, &args.id).await?;
    client.forget(&id, &ForgetQuery { stop: args.stop.then_some(true) }).await?;
    if args.json {
        tell::json_result(&serde_json::json!({ "forgotten": id }))?;
    }
    Ok(0)
}
