//! `lastbyte signal`: one signal to a process and its group.

use std::str::FromStr;

use lastbyte_client::wire::{Delivered, SignalRequest};
use lastbyte_engine::Signal;

use crate::process_args::ProcessArgs;
use crate::{exit_code, print, units};

/// Send a signal to a process and its group, and print what it reached
#[derive(Debug, clap::Args)]
#[command(after_help = exit_code::help::process_query_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// Signal name like INT or SIGINT, or a number; a dash before it is ignored, as in -9
    #[arg(value_parser = parse_signal, allow_hyphen_values = true)]
    signal: Signal,

    /// Print the server's answer as JSON
    #[arg(long)]
    json: bool,
}

fn parse_signal(text: &str) -> Result<Signal, <Signal as FromStr>::Err> {
    text.strip_prefix('-').unwrap_or(text).parse()
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find().await?;
    let request = SignalRequest { signal: units::signal_text(args.signal) };
    let answer = client.signal(&id, &request).await?;
    if args.json {
        print::json_result(&answer)?;
        return Ok(0);
    }
    print::result(match answer.delivered {
        Delivered::Group => format!("sent {} to the process and its group\n", args.signal),
        Delivered::Survivors { count } => {
            format!("sent {} to {count} processes that it left\n", args.signal)
        }
        Delivered::Nobody => format!("{} was not sent: the process has ended\n", args.signal),
    })?;
    Ok(0)
}
