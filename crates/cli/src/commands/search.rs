//! `lastbyte search`: the lines of an output that match.

use std::fmt::Write;

use lastbyte_client::wire::{SearchAnswer, SearchLine, SearchMatch, SearchQuery, SearchStopped};

use crate::exit_code::help::{self, Code};
use crate::output_args::OutputArgs;
use crate::process_args::ProcessArgs;
use crate::{exit_code, in_words, tell};

/// Print the lines of an output that match a regular expression
///
/// Each line comes behind the byte it begins at, which `logs --from` takes. The exit code is 1 when
/// nothing matches. A search that went no further than it may says so on standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// What to look for within a line
    #[arg(value_name = "REGEX")]
    pattern: String,

    /// Begin at this byte
    #[arg(long, value_name = "CURSOR", default_value_t = 0)]
    from: u64,

    /// Also print so many lines before and after each that matches
    #[arg(short = 'C', long, value_name = "LINES", default_value_t = 0)]
    context: u8,

    /// Print at most so many lines that match
    #[arg(short, long, value_name = "COUNT", default_value_t = 100)]
    max: u64,

    #[command(flatten)]
    output: OutputArgs,

    /// Write the server's answer as JSON
    #[arg(long)]
    json: bool,
}

fn exit_codes() -> String {
    help::list([
        (Code::Is(0), "something matches"),
        (Code::Is(exit_code::NOT_MET), "nothing matches"),
        (
            Code::Is(exit_code::USAGE),
            "the call of lastbyte makes no sense, its settings cannot be used, or the pattern is none",
        ),
        help::NO_PROCESS,
    ])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find().await?;
    let query = SearchQuery {
        pattern: args.pattern.clone(),
        from: Some(args.from),
        stream: args.output.stream,
        late: Some(args.output.late),
        before: Some(args.context),
        after: Some(args.context),
        max_matches: Some(args.max),
    };
    let answer = client.search(&id, &query).await?;
    match args.json {
        true => tell::json_result(&answer)?,
        false => tell::result(page(&answer))?,
    }
    tell_stopped(&answer);
    Ok(if answer.matches.is_empty() { exit_code::NOT_MET } else { 0 })
}

/// As grep has it: a colon behind the place of a match, a dash behind that of its context.
fn page(answer: &SearchAnswer) -> String {
    let mut page = String::new();
    for SearchMatch { line, before, after, .. } in &answer.matches {
        before.iter().for_each(|line| add(&mut page, line, '-'));
        add(&mut page, line, ':');
        after.iter().for_each(|line| add(&mut page, line, '-'));
    }
    page
}

fn add(page: &mut String, line: &SearchLine, mark: char) {
    let text = in_words::one_line(&line.text);
    // A string takes whatever is written to it.
    _ = writeln!(page, "{}{mark}{text}", line.range.start);
}

fn tell_stopped(answer: &SearchAnswer) {
    let SearchAnswer { next, dropped, stopped, .. } = answer;
    for range in dropped {
        tell::line(format_args!("the bytes {}-{} were dropped", range.start, range.end));
    }
    let why = match stopped {
        SearchStopped::End => return,
        SearchStopped::Matches => "so many were asked for",
        SearchStopped::Bytes => "the answer is as long as one may be",
        SearchStopped::Work => "as much was read as one search may",
    };
    tell::line(format_args!("there may be more, {why}: go on with --from {next}"));
}
