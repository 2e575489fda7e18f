//! Searching the output of a process, off the runtime and with bounds.

use lastbyte_engine::Process;
use lastbyte_output::views::Source;
use lastbyte_output::views::search::{self, FoundLine, Match, Query, Stopped, compile};
use lastbyte_wire::{Error, SearchAnswer, SearchLine, SearchMatch, SearchQuery, SearchStopped};

use super::{long_read, read, refusal};
use crate::from_wire::{self, count};
use crate::{App, to_wire};

const USUAL_MATCHES: u64 = 100;
/// What is shown, of lines and their context.
const MOST_BYTES: usize = 1 << 20;
/// What is read: a second of one core, for the slowest of patterns.
const MOST_SCANNED: u64 = 64 << 20;

/// Searches as the query says.
pub async fn search(
    app: &App,
    process: &Process,
    query: &SearchQuery,
) -> Result<SearchAnswer, Error> {
    let asked = asked(query)?;
    let _permit = app.begin_wait()?;
    let snapshot = process.snapshot();
    let late = query.late == Some(true);
    let source = read::source(process, &snapshot, query.stream, late);
    let search = move |source: &dyn Source| search::search(source, &asked);
    let bytes = source.end().saturating_sub(query.from.unwrap_or(0));
    let found = long_read::in_turn(app, process, (source, bytes), search).await?;
    Ok(SearchAnswer {
        matches: found.matches.into_iter().map(in_words).collect(),
        stopped: stopped(found.stopped),
        next: found.next,
        next_number: found.next_number,
        dropped: found.dropped.iter().map(to_wire::range).collect(),
        total: snapshot.extent.len,
        phase: to_wire::phase(&snapshot.phase),
        log_open: snapshot.log_open,
    })
}

fn asked(query: &SearchQuery) -> Result<Query, Error> {
    let max_matches = query.max_matches.unwrap_or(USUAL_MATCHES);
    let max_matches = count("max_matches", max_matches, SearchQuery::MOST_MATCHES)?;
    Ok(Query {
        regex: compile(&query.pattern).map_err(|error| refusal::from_pattern(&error))?,
        reading: from_wire::reading(query.raw),
        from: query.from.unwrap_or(0),
        before: query.before.unwrap_or(0),
        after: query.after.unwrap_or(0),
        max_matches,
        max_bytes: MOST_BYTES,
        max_scanned: MOST_SCANNED,
    })
}

fn stopped(stopped: Stopped) -> SearchStopped {
    match stopped {
        Stopped::End => SearchStopped::End,
        Stopped::Matches => SearchStopped::Matches,
        Stopped::Bytes => SearchStopped::Bytes,
        Stopped::Work => SearchStopped::Work,
    }
}

fn in_words(found: Match) -> SearchMatch {
    SearchMatch {
        number: found.number,
        line: line(found.line),
        hits: found.hits.iter().map(|hit| to_wire::range(&hit.range)).collect(),
        before: found.before.into_iter().map(line).collect(),
        after: found.after.into_iter().map(line).collect(),
    }
}

fn line(line: FoundLine) -> SearchLine {
    SearchLine { text: read::lossy(line.text), range: to_wire::range(&line.range) }
}
