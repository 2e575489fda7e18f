//! `lastbyte search`: the lines of an output that match.

use lastbyte_client::wire::{SearchAnswer, SearchLine, SearchMatch, SearchQuery, SearchStopped};
use lastbyte_client::{Client, ClientError};

use crate::exit_code::help::{self, Code};
use crate::process_args::{OutputArgs, ProcessArgs};
use crate::{exit_code, format, print, status_line, units};

/// Print the lines of a process's output that match a regular expression
///
/// Each line is prefixed with its byte offset, for `logs --from`. The exit code is 1 if nothing matches, or 4 if
/// bytes that were dropped might have.
/// If the search stops before the end of the output, standard error says so.
///
/// The expression is matched with the text that a person sees: without escape sequences, and with `\r`
/// and backspace applied. A text that was overwritten, such as a step of a progress bar, can match too.
#[derive(Debug, clap::Args)]
#[command(after_help = exit_codes())]
pub(crate) struct Args {
    #[command(flatten)]
    process: ProcessArgs,

    /// Regular expression to search each line for
    #[arg(value_name = "REGEX")]
    pattern: String,

    /// Match the bytes of the output, with its escape sequences
    #[arg(long)]
    raw: bool,

    /// Start at this byte
    #[arg(long, value_name = "CURSOR", value_parser = units::parse_whole::<u64>, allow_hyphen_values = true, default_value_t = 0)]
    from: u64,

    /// Also print this many lines before and after each match, at most 255
    #[arg(short = 'C', long, value_name = "LINES", value_parser = units::parse_context, allow_hyphen_values = true, default_value_t = 0)]
    context: u8,

    /// Print at most COUNT matching lines, from 1 to 10000
    #[arg(short, long, value_name = "COUNT", default_value_t = 100)]
    #[arg(value_parser = |text: &str| units::parse_count(text, SearchQuery::MOST_MATCHES))]
    max: u64,

    #[command(flatten)]
    output: OutputArgs,

    /// Print the server's answer as JSON
    #[arg(long)]
    json: bool,
}

fn exit_codes() -> String {
    help::list([
        (Code::OK, "at least one line matches"),
        (Code::NOT_MET, "no line matches"),
        (Code::INCOMPLETE, "no line matches, but bytes were dropped and not searched"),
        (Code::USAGE, "invalid arguments, settings or pattern"),
        help::NO_PROCESS,
    ])
}

/// Returns the exit code.
pub(crate) async fn run(args: &Args) -> anyhow::Result<u8> {
    let (client, id) = args.process.find_in_history().await?;
    let query = SearchQuery {
        pattern: args.pattern.clone(),
        raw: args.raw.then_some(true),
        from: Some(args.from),
        stream: args.output.stream,
        late: Some(args.output.late),
        before: Some(args.context),
        after: Some(args.context),
        max_matches: Some(args.max),
    };
    let answer = status_line::during("searching", search_all(&client, &id, query)).await?;
    print::answer(args.json, &answer, page)?;
    report_stopped(&answer);
    let may_be_late = answer.matches.is_empty() && !args.output.late;
    if may_be_late && !args.json && args.output.stream.is_none() {
        let late = format::late_bytes(&client.show(&id).await?);
        if late > 0 {
            print::message(format::left_out_late(late));
        }
    }
    Ok(match (answer.matches.is_empty(), answer.dropped.is_empty()) {
        (false, _) => 0,
        (true, true) => exit_code::NOT_MET,
        (true, false) => exit_code::INCOMPLETE,
    })
}

/// Asks again until the end: one request reads a limited part of a log, so that it cannot keep a server
/// busy.
async fn search_all(
    client: &Client,
    id: &str,
    mut query: SearchQuery,
) -> Result<SearchAnswer, ClientError> {
    let most = query.max_matches.unwrap_or(SearchQuery::MOST_MATCHES);
    let mut found = client.search(id, &query).await?;
    while found.stopped == SearchStopped::Work {
        query.from = Some(found.next);
        query.max_matches = Some(most - found.matches.len() as u64);
        found = joined(found, client.search(id, &query).await?);
    }
    Ok(found)
}

/// Two answers as one. The second search started where the first stopped, and counts lines from there.
fn joined(first: SearchAnswer, second: SearchAnswer) -> SearchAnswer {
    let SearchAnswer { mut matches, mut dropped, next_number: lines, .. } = first;
    let from_first = |number: Option<u64>| Some(lines? + number?);
    let numbered = |found: SearchMatch| SearchMatch { number: from_first(found.number), ..found };
    matches.extend(second.matches.into_iter().map(numbered));
    dropped.extend(second.dropped);
    let next_number = from_first(second.next_number);
    SearchAnswer { matches, dropped, next_number, ..second }
}

/// Like grep: a colon after the offset of a match, a dash after that of its context.
fn page(answer: &SearchAnswer) -> String {
    let shown = |line: &SearchLine, mark| {
        format!("{}{mark}{}\n", line.range.start, format::one_line(&line.text))
    };
    let mut page = String::new();
    for SearchMatch { line, before, after, .. } in &answer.matches {
        page.extend(before.iter().map(|line| shown(line, '-')));
        page.push_str(&shown(line, ':'));
        page.extend(after.iter().map(|line| shown(line, '-')));
    }
    page
}

fn report_stopped(answer: &SearchAnswer) {
    let SearchAnswer { next, dropped, stopped, .. } = answer;
    for range in dropped {
        print::message(format_args!("{} and not searched", format::dropped(range)));
    }
    let at = match stopped {
        SearchStopped::End => return,
        SearchStopped::Matches => {
            let count = answer.matches.len() as u64;
            format!("after {} (--max)", format::count(count, "match", "matches"))
        }
        SearchStopped::Bytes => "at the size limit of an answer".into(),
        // `search_all` goes on.
        SearchStopped::Work => return,
    };
    print::message(format_args!("stopped {at}; continue with --from {next}"));
}
