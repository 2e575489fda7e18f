//! Telling when the output of a process came.

use std::time::{Duration, UNIX_EPOCH};

use lastbyte_engine::{LogReader, Process, Snapshot};
use lastbyte_output::log::{RESOLUTION, ReadError, Stamped};
use lastbyte_wire::{Error, TimesAnswer, TimesQuery};

use super::refusal;
use crate::from_wire::count;
use crate::to_wire;

const USUAL_STAMPS: u64 = 1_000;

/// Looks as the query says, off the runtime.
pub async fn times(process: &Process, query: &TimesQuery) -> Result<TimesAnswer, Error> {
    let most = query.max_stamps.unwrap_or(USUAL_STAMPS);
    let most = count("max_stamps", most, TimesQuery::MOST_STAMPS)?;
    let (snapshot, reader) = (process.snapshot(), process.reader());
    let (at, asked) = (snapshot.clone(), query.clone());
    let found = move || look(&reader, &at, &asked, most);
    let (from, found) = refusal::read_blocking(process, "reading the times", found).await?;
    let streams = process.spec().streams;
    Ok(TimesAnswer {
        from,
        next: found.until,
        stamps: found.stamps.into_iter().map(|stamp| to_wire::stamp(stamp, streams)).collect(),
        resolution_ms: u64::try_from(RESOLUTION.as_millis()).unwrap_or(u64::MAX),
        total: snapshot.extent.len,
        phase: to_wire::phase(&snapshot.phase),
        log_open: snapshot.log_open,
    })
}

/// Where it begins, and the stamps from there on.
fn look(
    reader: &LogReader,
    snapshot: &Snapshot,
    query: &TimesQuery,
    most: usize,
) -> Result<(u64, Stamped), ReadError> {
    let end = match query.late {
        Some(true) => snapshot.extent.len,
        Some(false) | None => snapshot.output_len(),
    };
    let since = match query.since_unix_ns {
        Some(since) => reader.since(snapshot, UNIX_EPOCH + Duration::from_nanos(since))?,
        None => 0,
    };
    let from = query.from.unwrap_or(0).max(since).min(end);
    let to = query.to.unwrap_or(end).min(end);
    if from >= to {
        return Ok((from, Stamped { stamps: Vec::new(), until: from }));
    }
    Ok((from, reader.stamps(from..to, most)?))
}
