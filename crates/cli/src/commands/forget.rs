//! `lastbyte forget`: an ended process and its output, removed.

use lastbyte_client::wire::ForgetQuery;

use crate::process_args::ProcessArgs;
use crate::{exit_code, tell};

/// Forget a process that has ended, with its output
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::help::of_asking_about_one())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// Stop it first, if anything of it lives
    #[arg(long)]
    stop: bool,

    /// Write the id of what was forgotten as JSON
    #[arg(long)]
    json: bool,
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find().await?;
    client.forget(&id, &ForgetQuery { stop: args.stop.then_some(true) }).await?;
    if args.json {
        tell::json_result(&serde_json::json!({ "forgotten": id }))?;
    }
    Ok(0)
}
