//! `lastbyte wait`: until processes have ended, or until something else.

use std::time::Duration;

use anyhow::Context;
use lastbyte_client::Client;
use lastbyte_client::wire::{
    HandOverEnd, InputKind, InputUnknown, Met, Process, Selection, Wait, WaitManyRequest,
    WaitOutcome,
};
use tokio::time::{Instant, sleep_until};

use crate::exit_code::help::{self, Code};
use crate::select_args::{self, Found, IDS_HELP, SelectArgs, Which};
use crate::signals::{Interrupted, Signals};
use crate::status_line::StatusLine;
use crate::{autostart, client_error, exit_code, format, print, units};

/// Wait for processes to end, or for the first of several conditions
///
/// When only the end of one process is waited for, the exit code is the command's own. With other
/// conditions, it is 0 if one of them is met first and 1 if the process ends first.
///
/// Of several processes, each is waited for until it meets a condition, or with --any, until one of them
/// does. A line for each says what happened. The exit code is 0 if all went well and 1 if not.
///
/// --pattern is matched with the text that a person sees: without escape sequences, and with `\r` and
/// backspace applied. A text that was overwritten, such as a step of a progress bar, can match too.
///
/// On a terminal, a status line shows progress.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag on the command line")]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[arg(value_name = "ID", help = IDS_HELP)]
    ids: Vec<String>,

    /// Wait until one of the processes meets a condition; without it, or with --all, until each does
    #[arg(long)]
    any: bool,

    /// Give up after this long; what runs keeps running
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration_or_zero, allow_hyphen_values = true)]
    timeout: Option<Duration>,

    /// Wait for a line of output that matches this regular expression, and print the match
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pattern: Option<String>,

    /// Match --pattern with the bytes of the output, with its escape sequences
    #[arg(long, requires = "pattern")]
    raw: bool,

    /// Look for --pattern from this byte of the output on, instead of from its beginning
    #[arg(long, value_name = "BYTES", value_parser = units::parse_whole::<u64>, requires = "pattern")]
    from: Option<u64>,

    /// Wait for more than this many bytes of output
    #[arg(long, value_name = "BYTES", value_parser = units::parse_whole::<u64>, allow_hyphen_values = true)]
    output_past: Option<u64>,

    /// Wait until the process or one of its descendants listens on this TCP port
    #[arg(long, value_name = "PORT", value_parser = units::parse_port, allow_hyphen_values = true)]
    port: Option<u16>,

    /// Wait until the process or one of its descendants waits for input: a prompt, a password, a pager
    #[arg(long)]
    needs_input: bool,

    /// Wait until the person to whom the keyboard was handed over is done
    #[arg(long)]
    hand_over: bool,

    /// Wait until nothing has been written for this long
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration, allow_hyphen_values = true)]
    silence: Option<Duration>,

    /// Print the server's answer as JSON; one line for each of several processes
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    select: SelectArgs,
}

fn exit_codes() -> String {
    help::list([
        (Code::Command, "the command's own exit code, if only the end of one was waited for"),
        (
            Code::OK,
            "another condition was met; of several processes: by each, or all exited with 0",
        ),
        (
            Code::NOT_MET,
            "the process ended before another condition was met; of several: one did, or failed",
        ),
        help::INVALID_ARGS_OR_SETTINGS,
        help::NO_MATCH,
        (
            Code::TIMED_OUT,
            "the wait timed out and the process keeps running, or the process itself timed out
         and was stopped",
        ),
        (
            Code::FAILURE,
            "the process was lost, there is no such process, no server is running, or it refused
         the request",
        ),
        (Code::Signal, "signal N ended the command, or the wait while the process keeps running"),
    ])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let which = args.select.which_or_all(&args.ids)?;
    let client = autostart::client_of_history(&args.select.server).await?;
    match which {
        Which::One(id) => {
            let process = client.show(&id).await?;
            args.wait_for_one(&client, &process.id).await
        }
        Which::Several(_) => {
            let Found { processes, code } = args.select.find(&client, &args.ids).await?;
            if code != 0 {
                // What is not there will never end.
                return Ok(code);
            }
            if processes.is_empty() {
                args.select.say_none();
                return Ok(exit_code::NONE_SELECTED);
            }
            args.wait_for_several(&client, &processes).await
        }
    }
}

impl Args {
    fn conditions(&self) -> Wait {
        Wait {
            exit: Some(true),
            output_past: self.output_past,
            pattern: self.pattern.clone(),
            raw: self.raw.then_some(true),
            from: self.from,
            port: self.port,
            needs_input: self.needs_input.then_some(true),
            hand_over: self.hand_over.then_some(true),
            silence_ms: self.silence.map(units::ms),
            timeout_ms: self.timeout.map(units::ms),
        }
    }

    /// Without another condition the exit code is that of the command.
    fn is_only_for_end(&self) -> bool {
        let wait = self.conditions();
        Wait { exit: wait.exit, timeout_ms: wait.timeout_ms, ..Wait::default() } == wait
    }

    async fn wait_for_one(&self, client: &Client, id: &str) -> anyhow::Result<u8> {
        let wait = self.conditions();
        let waiting = client.wait(id, &wait);
        let progress =
            async |client: &Client| client.show(id).await.ok().map(|it| in_one_line(&it));
        let answer = if self.json {
            waiting.await
        } else {
            with_progress(client, waiting, progress).await?
        };
        let answer = answer.map_err(client_error::after_contact)?;
        if self.json {
            print::json_result(&answer)?;
        }
        say_if_unrecorded(&answer.process);
        let ending = answer.process.ending.as_ref();
        match answer.wait {
            Met::Exit if self.is_only_for_end() => {
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
            Met::Timeout { input_unknown } => {
                print::message(timed_out(input_unknown.as_ref()));
                Ok(exit_code::TIMED_OUT)
            }
            Met::NeedsInput { .. } | Met::HandOver { .. } => {
                if !self.json {
                    print::result(format!("{}\n", in_words(&answer.process, &answer.wait)))?;
                }
                Ok(0)
            }
            Met::Pattern { text, .. } => {
                if !self.json {
                    print::result(format!("{}\n", format::one_line(&text)))?;
                }
                Ok(0)
            }
            Met::OutputPast { .. } | Met::Port { .. } | Met::Silence => Ok(0),
        }
    }

    /// By their ids, so that the same ones are waited for when a connection breaks.
    async fn wait_for_several(&self, client: &Client, these: &[Process]) -> anyhow::Result<u8> {
        let ids = these.iter().map(|process| process.id.clone()).collect();
        let request = WaitManyRequest {
            select: Selection { ids: Some(ids), ..Selection::default() },
            wait: self.conditions(),
            any: self.any.then_some(true),
        };
        let waiting = client.wait_many(&request);
        let progress = async |client: &Client| how_many_ended(client, &request).await;
        let answer = if self.json {
            waiting.await
        } else {
            with_progress(client, waiting, progress).await?
        };
        let processes = answer.map_err(client_error::after_contact)?.processes;
        if self.json {
            processes.iter().try_for_each(print::json_result)?;
        } else {
            let met = processes.iter().filter_map(|one| Some((one, one.wait.as_ref()?)));
            print::result(select_args::lines(met.map(|(WaitOutcome { process, .. }, met)| {
                (select_args::called(&process.id, process.name.as_deref()), in_words(process, met))
            })))?;
        }
        processes.iter().for_each(|one| say_if_unrecorded(&one.process));
        let codes = processes
            .iter()
            .filter_map(|one| one.wait.as_ref().map(|met| self.code_of(&one.process, met)));
        Ok(codes.max().unwrap_or(0))
    }

    /// Of one of several.
    fn code_of(&self, process: &Process, met: &Met) -> u8 {
        let failed = |ending| exit_code::from_ending(ending).ok() != Some(0);
        match met {
            Met::Timeout { .. } => exit_code::TIMED_OUT,
            Met::Exit if self.is_only_for_end() && !process.ending.as_ref().is_none_or(failed) => 0,
            Met::Exit => exit_code::NOT_MET,
            Met::Pattern { .. }
            | Met::OutputPast { .. }
            | Met::Port { .. }
            | Met::NeedsInput { .. }
            | Met::HandOver { .. }
            | Met::Silence => 0,
        }
    }
}

/// What one of several has met.
fn in_words(process: &Process, met: &Met) -> String {
    match met {
        Met::Exit => process.ending.as_ref().map(format::ending).unwrap_or_default(),
        Met::OutputPast { total } => {
            format!("{} of output", format::count(*total, "byte", "bytes"))
        }
        Met::Pattern { text, .. } => format::one_line(text),
        Met::Port { port } => format!("listens on port {port}"),
        Met::Silence => "silent".into(),
        Met::NeedsInput { pid, name, on, secret } => {
            let on = match (on, secret) {
                (InputKind::Pipe, _) => "standard input",
                (InputKind::Terminal, false) => "the terminal",
                (InputKind::Terminal, true) => "the terminal, without showing it: a password",
            };
            format!("{} (pid {pid}) waits for input on {on}", format::one_line(name))
        }
        Met::HandOver { how } => match how {
            Some(HandOverEnd::Done) => "the person is done".into(),
            Some(HandOverEnd::Left) => "the person left without giving the keyboard back".into(),
            Some(HandOverEnd::Expired) => "nobody used the link in time".into(),
            None => "the keyboard was not handed over".into(),
        },
        Met::Timeout { input_unknown } => timed_out(input_unknown.as_ref()),
    }
}

fn timed_out(unknown: Option<&InputUnknown>) -> String {
    let text = "timed out; the process keeps running";
    match unknown {
        None => text.into(),
        Some(InputUnknown { pid, name }) => {
            let name = format::one_line(name);
            format!("{text}; whether {name} (pid {pid}) waits for input, the server may not see")
        }
    }
}

fn say_if_unrecorded(process: &Process) {
    if process.ending.is_some() && process.recorded == Some(false) {
        print::message(format_args!("recorded: {}", format::NOT_RECORDED));
    }
}

async fn how_many_ended(client: &Client, request: &WaitManyRequest) -> Option<String> {
    let now = Wait { timeout_ms: Some(0), ..Wait::default() };
    let request = WaitManyRequest { wait: now, any: None, ..request.clone() };
    let now = client.wait_many(&request).await.ok()?.processes;
    let ended = now.iter().filter(|one| one.process.phase.has_ending()).count();
    Some(format!("waiting for {} processes: {ended} ended", now.len()))
}

/// Often enough for a clock of seconds.
const EVERY: Duration = Duration::from_millis(500);

/// Waits, with a status line if standard error is a terminal.
async fn with_progress<T>(
    client: &Client,
    waiting: impl Future<Output = T>,
    progress: impl AsyncFn(&Client) -> Option<String>,
) -> anyhow::Result<T> {
    let Some(line) = StatusLine::new() else { return Ok(waiting.await) };
    let mut signals = Signals::listen()?;
    tokio::select! {
        answer = waiting => Ok(answer),
        signal = signals.next() => Err(Interrupted::while_running(signal).into()),
        () = update_line(&line, client, progress) => unreachable!("it goes on for ever"),
    }
}

async fn update_line(
    line: &StatusLine,
    client: &Client,
    progress: impl AsyncFn(&Client) -> Option<String>,
) {
    // Whether the server is away is the concern of the wait.
    let client = Client::to(client.address().clone()).patience(Duration::ZERO);
    let begun = Instant::now();
    for nth in 1.. {
        sleep_until(begun + EVERY * nth).await;
        // A server that does not answer this will not answer the wait either, which then says why.
        if let Some(text) = progress(&client).await {
            line.show(&text);
        }
    }
}

fn in_one_line(process: &Process) -> String {
    format!(
        "waiting for {}: {} for {}, {} of output",
        select_args::called(&process.id, process.name.as_deref()),
        process.phase.as_str(),
        format::age(process),
        format::size(process.total)
    )
}
