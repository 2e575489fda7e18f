//! `lastbyte wait`: until a process has ended, or until something else.

use std::time::Duration;

use anyhow::Context;
use lastbyte_client::Client;
use lastbyte_client::wire::{Met, Process, Wait};
use rustix::stdio::stderr;
use tokio::time::{Instant, sleep_until};

use crate::exit_code::help::{self, Code};
use crate::process_args::{ProcessArgs, short_id};
use crate::signals::{Interrupted, Signals};
use crate::{client_error, exit_code, format, print, stdio, units};

/// Wait for a process to end, or for the first of several conditions
///
/// When only the end is waited for, the exit code is the command's own. With other conditions, it is 0
/// if one of them is met first and 1 if the process ends first.
///
/// On a terminal, a status line shows progress.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// Give up after this long; the process keeps running
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration_or_zero, allow_hyphen_values = true)]
    timeout: Option<Duration>,

    /// Wait for a line of output that matches this regular expression, and print the match
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pattern: Option<String>,

    /// Wait for more than this many bytes of output
    #[arg(long, value_name = "BYTES", value_parser = units::parse_whole::<u64>, allow_hyphen_values = true)]
    output_past: Option<u64>,

    /// Wait until the process or one of its descendants listens on this TCP port
    #[arg(long, value_name = "PORT", value_parser = units::parse_port, allow_hyphen_values = true)]
    port: Option<u16>,

    /// Wait until nothing has been written for this long
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, allow_hyphen_values = true)]
    silence: Option<Duration>,

    /// Print the server's answer as JSON
    #[arg(long)]
    json: bool,
}

fn exit_codes() -> String {
    help::list([
        (Code::Command, "the command's own exit code, if only its end was waited for"),
        (Code::OK, "another condition was met"),
        (Code::NOT_MET, "the process ended before another condition was met"),
        help::INVALID_ARGS_OR_SETTINGS,
        (
            Code::TIMED_OUT,
            "the wait timed out and the process keeps running, or the process itself timed out
         and was stopped",
        ),
        help::NO_PROCESS,
        (Code::Signal, "signal N ended the command, or the wait while the process keeps running"),
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
        silence_ms: args.silence.map(units::ms),
        timeout_ms: args.timeout.map(units::ms),
    };
    // Without another condition the exit code is that of the command.
    let only_end = Wait { exit: wait.exit, timeout_ms: wait.timeout_ms, ..Wait::default() } == wait;
    let waiting = client.wait(&id, &wait);
    let answer =
        if args.json { waiting.await } else { with_progress(&client, &id, waiting).await? };
    let answer = answer.map_err(client_error::after_contact)?;
    if args.json {
        print::json_result(&answer)?;
    }
    let ending = answer.process.ending.as_ref();
    if ending.is_some() && answer.process.recorded == Some(false) {
        print::message(format_args!("recorded: {}", format::NOT_RECORDED));
    }
    match answer.wait {
        Met::Exit if only_end => {
            let ending = ending.context("the server did not say how the process ended")?;
            exit_code::from_ending(ending)
        }
        Met::Exit => {
            let text = ending.map(format::ending).unwrap_or_default();
            if ending.is_some_and(format::is_lost) {
                print::message(text);
            } else {
                print::message(format_args!("the process ended first: {text}"));
            }
            Ok(exit_code::NOT_MET)
        }
        Met::Timeout => {
            print::message("timed out; the process keeps running");
            Ok(exit_code::TIMED_OUT)
        }
        Met::Pattern { text, .. } => {
            if !args.json {
                print::result(format!("{}\n", format::one_line(&text)))?;
            }
            Ok(0)
        }
        Met::OutputPast { .. } | Met::Port { .. } | Met::Silence => Ok(0),
    }
}

/// Often enough for a clock of seconds.
const EVERY: Duration = Duration::from_millis(500);
const CLEAR: &str = "\r\x1b[K";

/// Waits, with a status line if standard error is a terminal.
async fn with_progress<T>(
    client: &Client,
    id: &str,
    waiting: impl Future<Output = T>,
) -> anyhow::Result<T> {
    if !rustix::termios::isatty(stderr()) {
        return Ok(waiting.await);
    }
    let mut signals = Signals::listen()?;
    let _line = StatusLine;
    tokio::select! {
        answer = waiting => Ok(answer),
        signal = signals.next() => Err(Interrupted::while_running(signal).into()),
        () = update_line(client, id) => unreachable!("it goes on for ever"),
    }
}

async fn update_line(client: &Client, id: &str) {
    // Whether the server is away is the concern of the wait.
    let client = Client::to(client.address().clone()).patience(Duration::ZERO);
    let begun = Instant::now();
    for nth in 1.. {
        sleep_until(begun + EVERY * nth).await;
        // A server that does not answer this will not answer the wait either, which then says why.
        if let Ok(process) = client.show(id).await {
            write(&format!("{CLEAR}{}", in_one_line(&process)));
            print::break_line_first();
        }
    }
}

fn in_one_line(process: &Process) -> String {
    let line = format!(
        "waiting for {}: {} for {}, {} of output",
        short_id(&process.id),
        process.phase.as_str(),
        format::age(process),
        format::size(process.total)
    );
    // A line that is wrapped could not be cleared.
    line.chars().take(usize::from(stdio::size().cols).saturating_sub(1)).collect()
}

/// Cleared when dropped.
struct StatusLine;

impl Drop for StatusLine {
    fn drop(&mut self) {
        write(CLEAR);
        print::line_is_clear();
    }
}

fn write(text: &str) {
    // A status line that cannot be written is no loss.
    _ = stdio::write_all(stderr(), text.as_bytes());
}
