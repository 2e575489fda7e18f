//! Telling where the lines of a log begin, off the runtime and with bounds.

use std::sync::{Arc, Mutex, PoisonError};

use lastbyte_engine::{Engine, Id, LogSource, Process};
use lastbyte_output::views::Source;
use lastbyte_output::views::line_index::{LineIndex, Place, Starts};
use lastbyte_wire::{Error, LinesAnswer, LinesQuery};

use super::long_read;
use crate::from_wire::{count, invalid};
use crate::{App, to_wire};

/// What one request counts: some tenths of a second.
const MOST_COUNTED: u64 = 256 << 20;
/// How many logs have an index. Each takes 256 KiB at most.
const MOST_INDEXES: usize = 64;

type Shared = Arc<tokio::sync::Mutex<LineIndex>>;

/// The indexes of the logs that were asked about last.
#[derive(Debug, Default)]
pub(crate) struct LineIndexes(Mutex<Vec<(Id, Shared)>>);

impl LineIndexes {
    /// The index of this process; those of forgotten ones go.
    fn of(&self, engine: &Engine, id: Id) -> Shared {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(id, _)| engine.get(*id).is_some());
        let at = all.iter().position(|(known, _)| *known == id);
        let index = at.map(|at| all.remove(at).1).unwrap_or_default();
        if all.len() >= MOST_INDEXES {
            all.remove(0);
        }
        all.push((id, Arc::clone(&index)));
        index
    }
}

/// Looks as the query says. Requests about the same log take turns.
pub async fn lines(app: &App, process: &Process, query: &LinesQuery) -> Result<LinesAnswer, Error> {
    let most = count("count", query.count.unwrap_or(1), LinesQuery::MOST_LINES)?;
    if query.line.is_some() && query.offset.is_some() {
        return Err(invalid("`line` and `offset` cannot be combined"));
    }
    let _permit = app.begin_wait()?;
    let index = app.line_indexes.of(&app.engine, process.id());
    let mut index = index.lock_owned().await;
    let snapshot = process.snapshot();
    let source = LogSource::all(process.reader(), snapshot.clone());
    let bytes = source.end().saturating_sub(index.counted());
    let query = query.clone();
    let look = move |source: &dyn Source| {
        index.extend(source, MOST_COUNTED)?;
        let found = index.find(source, place(&query, index.lines()), most)?;
        Ok((found, index.lines(), index.counted()))
    };
    let (found, lines, counted) = long_read::in_turn(app, process, (source, bytes), look).await?;
    let Starts { first, offsets, end } = found;
    let is_shown = !offsets.is_empty();
    Ok(LinesAnswer {
        first: is_shown.then_some(first),
        offsets,
        end: is_shown.then_some(end),
        lines,
        counted,
        dropped: to_wire::dropped(&snapshot.extent.dropped),
        total: snapshot.extent.len,
        phase: to_wire::phase(&snapshot.phase),
        log_open: snapshot.log_open,
    })
}

fn place(query: &LinesQuery, lines: u64) -> Place {
    match (query.offset, query.line.unwrap_or(0)) {
        (Some(offset), _) => Place::Offset(offset),
        (None, line) if line < 0 => Place::Line(lines.saturating_sub(line.unsigned_abs())),
        (None, line) => Place::Line(line.unsigned_abs()),
    }
}
