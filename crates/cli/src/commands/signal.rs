//! `lastbyte signal`: one signal to a process and its group.

use lastbyte_client::wire::{Delivered, SignalRequest};
use lastbyte_engine::Signal;

use crate::process_args::ProcessArgs;
use crate::{exit_code, tell};

/// Send a signal to a process and its group, and say whom it reached
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::help::of_asking_about_one())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// A name like INT or SIGINT, or a number
    signal: Signal,

    /// Write the server's answer as JSON
    #[arg(long)]
    json: bool,
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find().await?;
    let request = SignalRequest { signal: args.signal.to_string() };
    let answer = client.signal(&id, &request).await?;
    if args.json {
        tell::json_result(&answer)?;
        return Ok(0);
    }
    tell::result(match answer.delivered {
        Delivered::Group => format!("{} to the process and its group\n", args.signal),
        Delivered::Survivors { count } => format!("{} to {count} that it has left\n", args.signal),
        Delivered::Nobody => format!("{} to nobody: it has ended\n", args.signal),
    })?;
    Ok(0)
}
