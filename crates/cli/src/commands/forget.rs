//! `lastbyte forget`: an ended process and its output, removed.

use lastbyte_client::ClientError;
use lastbyte_client::wire::{ErrorCode, ForgetQuery};

use crate::process_args::{ProcessArgs, short_id};
use crate::{exit_code, print};

/// Forget a process that has ended and delete its output
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::help::process_query_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// Stop it first if anything of it is still running
    #[arg(long)]
    stop: bool,

    /// Print the id of the forgotten process as JSON
    #[arg(long)]
    json: bool,
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find().await?;
    let query = ForgetQuery { stop: args.stop.then_some(true) };
    client.forget(&id, &query).await.map_err(|error| advised(error, short_id(&id)))?;
    if args.json {
        print::json_result(&serde_json::json!({ "forgotten": id }))?;
    }
    Ok(0)
}

/// With the call that would succeed.
fn advised(error: ClientError, id: &str) -> ClientError {
    let ClientError::Refused(refusal) = error else { return error };
    let stop = format!("`lastbyte forget --stop {id}` stops it first");
    let show = format!("`lastbyte show {id}` says which process holds it, and {stop}");
    ClientError::Refused(match refusal.code {
        ErrorCode::NotEnded => refusal.hint(stop),
        ErrorCode::OutputHeld => refusal.hint(show),
        _ => refusal,
    })
}
