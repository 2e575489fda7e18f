//! `lastbyte wait`: until a process has ended, or until something else.

use std::time::Duration;

use anyhow::Context;
use lastbyte_client::Client;
use lastbyte_client::wire::{Met, Process, Wait, WaitAnswer};

use crate::exit_code::help::{self, Code};
use crate::process_args::ProcessArgs;
use crate::{duration, exit_code, in_words, progress, tell};

/// Wait for the end of a process, or for the first of several things
///
/// Waiting for the end alone, the exit code is the command's own. When something else is waited
/// for and comes first, the exit code is 0; when the end comes first, it is 1.
///
/// On a terminal a line says meanwhile how the process gets on.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// Give up after this long; the process runs on
    #[arg(long, value_name = "TIME", value_parser = duration::parse_or_zero, allow_hyphen_values = true)]
    timeout: Option<Duration>,

    /// Wait for a line of the output that matches this regular expression, and print the match
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pattern: Option<String>,

    /// Wait for more than so many bytes of output
    #[arg(long, value_name = "BYTES")]
    output_past: Option<u64>,

    /// Wait until the process, or whoever descends from it, listens on this TCP port
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,

    /// Wait until nothing was written for this long
    #[arg(long, value_name = "TIME", value_parser = duration::parse, allow_hyphen_values = true)]
    silence: Option<Duration>,

    /// Write the server's answer as JSON
    #[arg(long)]
    json: bool,
}

fn exit_codes() -> String {
    help::list([
        (Code::OfCommand, "the command's own exit code, when only its end was waited for"),
        (Code::Is(0), "something else was waited for and has come"),
        (
            Code::Is(exit_code::NOT_MET),
            "something else was waited for, and the process ended first",
        ),
        help::UNUSABLE,
        (
            Code::Is(exit_code::TIMED_OUT),
            "the time of the wait is over and the process runs on, or the process was stopped because
         its own time was over",
        ),
        help::NO_PROCESS,
        (Code::OfSignal, "the command was ended by signal N, or the wait was and the process runs on"),
    ])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find().await?;
    let wait = Wait {
        exit: Some(true),
        output_past: args.output_past,
        pattern: args.pattern.clone(),
        from: None,
        port: args.port,
        silence_ms: args.silence.map(duration::ms),
        timeout_ms: args.timeout.map(duration::ms),
    };
    let answer = args.until_met(&client, &id, &wait).await?;
    if args.json {
        tell::json_result(&answer)?;
    }
    match answer.wait {
        Met::Exit if args.waits_for_the_end_alone() => code_of(&answer.process),
        Met::Exit => {
            let ending = answer.process.ending.as_ref().map(in_words::ending).unwrap_or_default();
            tell::line(format_args!("the process ended first: {ending}"));
            Ok(exit_code::NOT_MET)
        }
        Met::Timeout => {
            tell::line("the time is over; the process runs on");
            Ok(exit_code::TIMED_OUT)
        }
        Met::Pattern { text, .. } => {
            if !args.json {
                tell::result(format!("{}\n", in_words::one_line(&text)))?;
            }
            Ok(0)
        }
        Met::OutputPast { .. } | Met::Port { .. } | Met::Silence => Ok(0),
    }
}

impl Args {
    async fn until_met(
        &self,
        client: &Client,
        id: &str,
        wait: &Wait,
    ) -> anyhow::Result<WaitAnswer> {
        let waiting = client.wait(id, wait);
        let answer = match self.json {
            true => waiting.await,
            false => progress::while_waiting(client, id, waiting).await?,
        };
        Ok(answer?)
    }

    fn waits_for_the_end_alone(&self) -> bool {
        self.pattern.is_none()
            && self.output_past.is_none()
            && self.port.is_none()
            && self.silence.is_none()
    }
}

fn code_of(process: &Process) -> anyhow::Result<u8> {
    let ending = process.ending.as_ref().context("the server does not say how it ended")?;
    exit_code::of_wire_ending(ending)
}
