//! `lastbyte signal`: one signal to a process and its group.

use std::str::FromStr;

use lastbyte_client::wire::{Delivered, SignalRequest};
use lastbyte_engine::Signal;

use crate::process_args::ProcessArgs;
use crate::{exit_code, format, print, units};

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
    print::answer(args.json, &answer, |answer| in_words(args.signal, answer.delivered))?;
    Ok(0)
}

fn in_words(signal: Signal, delivered: Delivered) -> String {
    match delivered {
        Delivered::Group => format!("sent {signal} to the process and its group\n"),
        Delivered::Survivors { count } => {
            let processes = format::count(count, "process", "processes");
            format!("sent {signal} to {processes} that it left running\n")
        }
        Delivered::Nobody => format!("{signal} was not sent: the process has ended\n"),
    }
}
