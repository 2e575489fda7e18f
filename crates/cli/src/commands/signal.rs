//! `lastbyte signal`: one signal to processes and their groups.

use lastbyte_client::wire::{Delivered, SignalAnswer, SignalManyRequest};
use lastbyte_engine::Signal;

use crate::exit_code::help::{self, Code};
use crate::select_args::{self, SelectArgs};
use crate::{client_error, exit_code, format, print, units, usage};

/// Send a signal to processes and their groups, and print to whom it was sent
///
/// The signal is the last argument: a name like INT or SIGINT, or a number. A dash before it is
/// ignored, as in -9. The exit code is 1 if a process has ended and left nothing running, so that there
/// was nothing to signal.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes(), override_usage = USAGE)]
pub(crate) struct Args {
    #[arg(value_name = "ID", help = WORDS_HELP)]
    words: Vec<String>,

    /// Print the server's answer as JSON; one line for each of several processes
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    select: SelectArgs,
}

const USAGE: &str = "lastbyte signal [OPTIONS] [ID]... SIGNAL";
const WORDS_HELP: &str = "Process ids or names, unique prefixes or suffixes of ids, or `last` for the newest process; \
                          then the signal";

fn exit_codes() -> String {
    let nobody = (Code::NOT_MET, "a process was not signalled, because it has ended");
    help::list([
        help::SUCCESS,
        nobody,
        help::INVALID_ARGS_OR_SETTINGS,
        help::NO_MATCH,
        help::NO_PROCESS,
    ])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (signal, ids) = args.words.split_last().ok_or(usage::Error::NoSignal)?;
    let signal = parse_signal(signal, ids)?;
    let which = args.select.which(ids)?;
    let client = args.select.server.client().await?;
    let request =
        SignalManyRequest { select: which.selection(), signal: units::signal_text(signal) };
    let answer = client.signal_many(&request).await?;
    if which.is_one() {
        let delivered = select_args::only(answer)?.delivered;
        let delivered = delivered.ok_or_else(|| client_error::unexpected("no delivery"))?;
        let words = |answer: &SignalAnswer| in_words(signal, answer.delivered) + "\n";
        print::answer(args.json, &SignalAnswer { delivered }, words)?;
        return Ok(code(delivered));
    }
    if answer.processes.is_empty() {
        args.select.say_none_runs();
        return Ok(exit_code::NONE_SELECTED);
    }
    let words = |delivered| in_words(signal, delivered);
    let refused = select_args::print_each(&answer, args.json, |outcome| {
        outcome.delivered.map(words).unwrap_or_default()
    })?;
    let delivered = answer.processes.iter().filter_map(|outcome| outcome.delivered);
    Ok(delivered.map(code).fold(refused, u8::max))
}

fn code(delivered: Delivered) -> u8 {
    match delivered {
        Delivered::Group | Delivered::Survivors { .. } => 0,
        Delivered::Nobody => exit_code::NOT_MET,
    }
}

fn parse_signal(text: &str, ids: &[String]) -> Result<Signal, usage::Error> {
    let signal = text.strip_prefix('-').unwrap_or(text).parse::<Signal>();
    signal.map_err(|error| match ids {
        // An id without a signal.
        [] => usage::Error::NoSignal,
        // As kill(1) takes it.
        [first, rest @ ..] if first.parse::<Signal>().is_ok() => {
            let ids = rest.iter().map(String::as_str).chain([text]).map(usage::quoted).collect();
            usage::Error::SignalFirst { signal: first.clone(), ids }
        }
        _ => usage::Error::BadSignal { given: text.to_owned(), why: error.to_string() },
    })
}

fn in_words(signal: Signal, delivered: Delivered) -> String {
    match delivered {
        Delivered::Group => format!("sent {signal} to the process and its group"),
        Delivered::Survivors { count } => {
            let processes = format::count(count, "process", "processes");
            format!("sent {signal} to {processes} that it left running")
        }
        Delivered::Nobody => format!("{signal} was not sent: the process has ended"),
    }
}
