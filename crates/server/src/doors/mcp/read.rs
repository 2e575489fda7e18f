//! `read_output`: the beginning and the end, a part, the last lines, the bytes as they are, or the screen.

use std::ops::Range;

use lastbyte_engine::Process;
use lastbyte_wire::{Content, Error, Screen, ScreenCursor};

use super::args::Args;
use super::call::{Answer, Call, with_output};
use super::reply::{Budget, Raw, RawPage, last_lines, raw_page, text_page};
use crate::from_wire::invalid;
use crate::verbs::read::{self, ReadRequest};

/// Which part of the output.
enum Part {
    HeadAndTail,
    Range(Range<u64>),
    LastLines(usize),
}

/// What a page of bytes has besides the facts.
const RAW_LINES: usize = 220;

pub(super) async fn read_output(call: &Call, args: &Args) -> Answer {
    let process = call.find(&args.process("process_id")?)?;
    let budget = Budget::new(args.number("max_output_tokens")?);
    let part = part(args)?;
    match args.word("view", &["text", "raw", "screen"])? {
        None | Some(0) => read_text(call, &process, part, budget).await,
        Some(1) => read_bytes(call, &process, part, budget).await,
        Some(_) => read_screen(call, &process, part).await,
    }
}

fn part(args: &Args) -> Result<Part, Error> {
    let (offset, length) = (args.number("offset")?, args.number("length")?);
    let tail = args.number("tail")?;
    match (offset.or(length), tail) {
        (None, None) => Ok(Part::HeadAndTail),
        (None, Some(count)) => Ok(Part::LastLines(usize::try_from(count).unwrap_or(usize::MAX))),
        (Some(_), None) => {
            let from = offset.unwrap_or(0);
            let end = length.map_or(u64::MAX, |length| from.saturating_add(length));
            Ok(Part::Range(from..end))
        }
        (Some(_), Some(_)) => Err(invalid("`tail` cannot be combined with `offset` or `length`")),
    }
}

async fn read_text(call: &Call, process: &Process, part: Part, budget: Budget) -> Answer {
    let snapshot = process.snapshot();
    if matches!(part, Part::HeadAndTail) {
        return call.evidence(process, snapshot, 0, (budget, Vec::new())).await;
    }
    let header = call.header(process, &snapshot, Vec::new()).await;
    let room = budget.bytes().saturating_sub(header.len());
    let id = process.id().to_string();
    let shown = call.read(process, snapshot, move |source| match part {
        Part::LastLines(count) => last_lines(source, count, room, &id),
        Part::Range(range) => text_page(source, range, room, &id),
        Part::HeadAndTail => text_page(source, 0..u64::MAX, room, &id),
    });
    Ok(vec![with_output(header, &shown.await?)])
}

/// The rows of the screen, which are few; at an offset, the screen of then.
async fn read_screen(call: &Call, process: &Process, part: Part) -> Answer {
    let at = match part {
        Part::HeadAndTail => None,
        Part::Range(Range { start, end: u64::MAX }) => Some(start),
        Part::Range(_) | Part::LastLines(_) => {
            return Err(invalid("`tail` and `length` cannot be combined with view=screen").into());
        }
    };
    let snapshot = process.snapshot();
    let asked = ReadRequest::screen(at)?;
    let output = read::view(call.app(), process, &snapshot, asked).await?;
    let Content::Screen { screen } = output.content else { unreachable!("a screen was asked for") };
    let header = call.header(process, &snapshot, Vec::new()).await;
    Ok(vec![header + &in_words(&screen)])
}

fn in_words(screen: &Screen) -> String {
    let Screen { rows, cols, lines, cursor, title, .. } = screen;
    let cursor = match cursor {
        Some(ScreenCursor { row, col }) => format!("cursor at row {}, column {}", row + 1, col + 1),
        None => "cursor hidden".to_owned(),
    };
    let title = title.as_ref().map(|title| format!(", title {title:?}")).unwrap_or_default();
    let rows_shown = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    let text = lines[..rows_shown].join("\n");
    format!("screen of {rows} rows and {cols} columns, {cursor}{title}:\n{text}")
}

/// The facts in one block of text, the bytes and nothing else in the next.
async fn read_bytes(call: &Call, process: &Process, part: Part, budget: Budget) -> Answer {
    let range = match part {
        Part::HeadAndTail => 0..u64::MAX,
        Part::Range(range) => range,
        Part::LastLines(_) => return Err(invalid("`tail` needs view=text").into()),
    };
    let snapshot = process.snapshot();
    let end = range.end.min(snapshot.extent.len);
    let mut facts = call.header(process, &snapshot, Vec::new()).await;
    let room = budget.bytes().saturating_sub(facts.len() + RAW_LINES);
    let page = call.read(process, snapshot, move |source| raw_page(source, range, room)).await?;
    let RawPage { range, content, dropped } = page;
    if let Some(gone) = dropped {
        facts.push_str(&format!("dropped: bytes {}..{} are gone\n", gone.start, gone.end));
    }
    let (encoding, bytes) = match content {
        Raw::Text(text) => ("utf-8", text),
        Raw::Base64(text) => ("base64", text),
    };
    let Range { start, end: next } = range;
    facts.push_str(&format!("bytes {start}..{next} in {encoding}, alone in the next block"));
    if next < end {
        facts.push_str(&format!("; the rest starts at offset {next}"));
    }
    Ok(vec![facts, bytes])
}
