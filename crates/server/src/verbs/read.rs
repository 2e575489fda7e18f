//! Reading the output of a process: a view at one instant, or the bytes themselves.

mod raw;
mod request;
mod screen;

use std::time::Duration;

use lastbyte_engine::{LogSource, Process, Snapshot};
use lastbyte_output::log;
use lastbyte_output::views::{Source, head_tail, lines, text};
use lastbyte_wire::{Content, Error, Fold, Line, Output, OutputQuery, Stream, TextLine, View};
use tokio::time::timeout;

pub use raw::{RawBody, RawOutput};
pub use request::ReadRequest;
pub(crate) use screen::Checkpoints;

use super::{long_read, refusal};
use crate::{App, to_wire};
use request::Which;

/// What is read on the runtime: it comes from the page cache in the time of a copy.
const AT_ONCE: usize = 64 << 10;

/// A view as the query says, after waiting as it says.
pub async fn read(app: &App, process: &Process, query: &OutputQuery) -> Result<Output, Error> {
    let asked = ReadRequest::new(query)?;
    let snapshot = until_news(app, process, &asked, query.wait_ms).await?;
    view(app, process, &snapshot, asked).await
}

/// The same of the bytes themselves.
pub async fn raw(app: &App, process: &Process, query: &OutputQuery) -> Result<RawOutput, Error> {
    let asked = ReadRequest::new(query)?;
    let snapshot = until_news(app, process, &asked, query.wait_ms).await?;
    raw::read(app, process, snapshot, &asked).await
}

/// Waits so long for something past the cursor, or until nothing more can come.
async fn until_news(
    app: &App,
    process: &Process,
    asked: &ReadRequest,
    wait_ms: Option<u64>,
) -> Result<Snapshot, Error> {
    let snapshot = process.snapshot();
    let Some(wait) = wait_ms.filter(|wait| *wait > 0) else { return Ok(snapshot) };
    let _permit = app.begin_wait()?;
    let from = asked.waits_past(snapshot.extent.len);
    let news = |now: &Snapshot| now.extent.len > from || !asked.late && now.ending().is_some();
    let waited = timeout(Duration::from_millis(wait), process.wait_for(news)).await;
    Ok(waited.unwrap_or_else(|_| process.snapshot()))
}

/// A view at this snapshot.
pub async fn view(
    app: &App,
    process: &Process,
    snapshot: &Snapshot,
    asked: ReadRequest,
) -> Result<Output, Error> {
    let source = source(process, snapshot, asked.stream, asked.late);
    if asked.view == View::Screen {
        let (content, range) = screen::read(app, process, source, &asked).await?;
        return Ok(answer(process, snapshot, (content, range.start, range.end)));
    }
    let from = asked.cursor(source.end());
    let small = asked.budget() <= AT_ONCE && asked.view == View::HeadTail;
    let (content, next) = if small {
        render(&source, from, &asked).map_err(|error| refusal::unreadable(process, &error))?
    } else {
        let bytes = asked.reads(from..source.end());
        let render = move |source: &dyn Source| render(source, from, &asked);
        long_read::in_turn(app, process, (source, bytes), render).await?
    };
    Ok(answer(process, snapshot, (content, from, next)))
}

fn answer(
    process: &Process,
    snapshot: &Snapshot,
    (content, from, next): (Content, u64, u64),
) -> Output {
    Output {
        from,
        next,
        total: snapshot.extent.len,
        dropped: to_wire::dropped(&snapshot.extent.dropped),
        phase: to_wire::phase(&snapshot.phase),
        log_open: snapshot.log_open,
        final_len: snapshot.ending().map(|ending| ending.final_len),
        ending: snapshot.ending().map(|ending| to_wire::ending(ending, process)),
        content,
    }
}

/// The log at this snapshot, or one stream of it.
pub(super) fn source(
    process: &Process,
    snapshot: &Snapshot,
    stream: Option<Stream>,
    late: bool,
) -> LogSource {
    let (reader, snapshot) = (process.reader(), snapshot.clone());
    let source =
        if late { LogSource::all(reader, snapshot) } else { LogSource::output(reader, snapshot) };
    match stream {
        None => source,
        Some(Stream::Stdout) => source.only(log::Stream::Out),
        Some(Stream::Stderr) => source.only(log::Stream::Err),
    }
}

/// The view, and the cursor to go on from.
fn render(source: &dyn Source, from: u64, asked: &ReadRequest) -> std::io::Result<(Content, u64)> {
    let (end, budget) = (source.end(), asked.budget());
    Ok(match asked.view {
        View::Screen => unreachable!("`screen::read` makes it"),
        View::Raw => raw::content(source, from, budget)?,
        View::HeadTail => {
            let view = head_tail::native(source, from, budget)?;
            let content = Content::HeadTail {
                head: lossy(view.head),
                omitted: view.omitted.as_ref().map(to_wire::range),
                tail: lossy(view.tail),
            };
            (content, end)
        }
        View::Text => {
            let view = text::text(source, from..end, budget)?;
            let next = view.rest.map_or(end, |rest| rest.start);
            (Content::Text { lines: view.lines.into_iter().map(text_line).collect() }, next)
        }
        View::Lines => {
            let (view, next) = match asked.lines {
                Which::First(count) => {
                    let view = lines::first(source, count, budget)?;
                    let next = view.rest.as_ref().map_or(end, |rest| rest.start);
                    (view, next)
                }
                Which::Last(count) => (lines::last(source, count, budget)?, end),
            };
            (Content::Lines { lines: view.lines.into_iter().map(line).collect() }, next)
        }
    })
}

fn text_line(line: text::TextLine) -> TextLine {
    TextLine {
        text: line.text,
        range: to_wire::range(&line.range),
        cut: line.cut.as_ref().map(to_wire::range),
        repeats: line
            .repeats
            .map(|repeats| Fold { count: repeats.count, range: to_wire::range(&repeats.range) }),
    }
}

fn line(line: lines::Line) -> Line {
    Line {
        text: lossy(line.text),
        range: to_wire::range(&line.range),
        cut: line.cut.as_ref().map(to_wire::range),
    }
}

pub(super) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
