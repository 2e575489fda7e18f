//! `search_output`: matching lines with their byte offsets.

use lastbyte_wire::{SearchLine, SearchMatch, SearchQuery, SearchStopped};

use super::args::Args;
use super::call::{Answer, Call};
use super::facts;
use super::reply::Budget;
use crate::to_wire;
use crate::verbs::search;

/// How many lines around a match are shown at most.
const MOST_CONTEXT: u64 = 20;
/// The longest line.
const LINE_BYTES: usize = 400;
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
    let searching = search::search(call.app(), &process, &query);
    let found = call.until(&[], searching).await??;
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
