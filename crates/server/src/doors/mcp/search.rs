//! `search_output`: matching lines with their byte offsets.

use std::time::{Duration, Instant};

use lastbyte_engine::Process;
use lastbyte_wire::{Error, SearchAnswer, SearchLine, SearchMatch, SearchQuery, SearchStopped};

use super::args::Args;
use super::call::{Answer, Call};
use super::facts;
use super::reply::Budget;
use crate::verbs::search;
use crate::{App, to_wire};

/// How many lines around a match are shown at most.
const MOST_CONTEXT: u64 = 20;
/// The longest line.
const LINE_BYTES: usize = 400;
/// When a search that has found nothing is answered: a part of the log more takes a second or two.
const LONGEST: Duration = Duration::from_secs(20);
/// What is kept of a budget for the last line, which says how to go on.
const LAST_LINE: usize = 200;

pub(super) async fn search_output(call: &Call, args: &Args) -> Answer {
    let process = call.find(&args.process("process_id")?)?;
    let budget = Budget::new(args.number("max_output_tokens")?);
    let pattern = args.required_text("pattern")?;
    let context = args.number("context")?.unwrap_or(0).min(MOST_CONTEXT);
    let query = SearchQuery {
        pattern: pattern.to_owned(),
        from: args.number("offset")?,
        late: Some(true),
        before: Some(context as u8),
        after: Some(context as u8),
        max_matches: Some(1000),
        ..SearchQuery::default()
    };
    let found = call.until(&[], search_on(call.app(), &process, query)).await??;
    let known = to_wire::process(&process, &process.snapshot());
    let mut lines = call.notes();
    lines.push(facts::headline(&known));
    lines.push(facts::output(&known));
    for range in found.dropped.iter().take(3) {
        lines.push(format!("not searched: bytes {}..{} were dropped", range.start, range.end));
    }
    let mut text = lines.join("\n") + "\n\n";
    let mut shown = 0;
    for matched in &found.matches {
        let lines = in_lines(matched, context);
        if text.len() + lines.len() + LAST_LINE > budget.bytes() {
            break;
        }
        text.push_str(&lines);
        shown += 1;
    }
    let rest = found.matches.get(shown).map(first_byte);
    text.push_str(&match (rest, found.stopped) {
        (Some(next), _) => format!("[{shown} matches; more with offset {next}]"),
        (None, SearchStopped::End) => format!("[{shown} matches; all output was searched]"),
        (None, SearchStopped::Matches | SearchStopped::Bytes | SearchStopped::Work) => {
            format!("[{shown} matches; not searched to the end, go on with offset {}]", found.next)
        }
    });
    Ok(vec![text])
}

/// One search reads a limited part of a log: goes on until something is found, or for a while.
async fn search_on(
    app: &App,
    process: &Process,
    mut query: SearchQuery,
) -> Result<SearchAnswer, Error> {
    let begun = Instant::now();
    let mut dropped = Vec::new();
    loop {
        let mut found = search::search(app, process, &query).await?;
        dropped.append(&mut found.dropped);
        let is_at_work = found.stopped == SearchStopped::Work && found.matches.is_empty();
        if !is_at_work || begun.elapsed() > LONGEST {
            return Ok(SearchAnswer { dropped, ..found });
        }
        query.from = Some(found.next);
    }
}

fn first_byte(matched: &SearchMatch) -> u64 {
    matched.before.first().map_or(matched.line.range.start, |line| line.range.start)
}

/// Like grep: a colon after the offset of a match, a dash after that of its context.
fn in_lines(SearchMatch { line, before, after, .. }: &SearchMatch, context: u64) -> String {
    let one = |line: &SearchLine, mark: char| {
        let end = line.text.floor_char_boundary(LINE_BYTES);
        let cut = if end < line.text.len() { "…" } else { "" };
        format!("{}{mark}{}{cut}\n", line.range.start, &line.text[..end])
    };
    let mut text: String = before.iter().map(|line| one(line, '-')).collect();
    text.push_str(&one(line, ':'));
    text.extend(after.iter().map(|line| one(line, '-')));
    if context > 0 {
        text.push_str("--\n");
    }
    text
}
