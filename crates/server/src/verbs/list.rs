//! Listing processes, newest first, a page at a time; and showing one.

use lastbyte_engine::{Filter, Id, PhaseKind, Process, Session};
use lastbyte_wire::{self as wire, Error, ListAnswer, ListQuery, Phase};

use crate::{App, from_wire, to_wire};

const USUAL: u64 = 100;

pub fn list(app: &App, query: &ListQuery) -> Result<ListAnswer, Error> {
    let filter = Filter {
        session: query.session.clone().map(Session),
        phase: query.phase.map(phase),
        label: query.label.as_deref().map(label).transpose()?,
    };
    let before = query.before.as_deref().map(before).transpose()?;
    let most = from_wire::count("limit", query.limit.unwrap_or(USUAL), ListQuery::MOST)?;
    let page = app.engine.list(&filter, before, most);
    let processes = page.processes.iter();
    Ok(ListAnswer {
        processes: processes
            .map(|(process, snapshot)| to_wire::process(process, snapshot))
            .collect(),
        next: page.next.map(|id| id.to_string()),
    })
}

/// One process at this instant.
pub fn show(process: &Process) -> wire::Process {
    to_wire::process(process, &process.snapshot())
}

/// The live processes of its tree.
pub async fn survivors(process: &Process) -> Vec<wire::Survivor> {
    process.survivors().await.into_iter().map(to_wire::survivor).collect()
}

fn phase(phase: Phase) -> PhaseKind {
    match phase {
        Phase::Running => PhaseKind::Running,
        Phase::Draining => PhaseKind::Draining,
        Phase::Ended => PhaseKind::Ended,
        Phase::Lost => PhaseKind::Lost,
    }
}

fn label(text: &str) -> Result<(String, String), Error> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.into(), value.into())),
        None => Err(from_wire::invalid(format!("invalid label {text:?}: it has no value"))
            .hint("give it as `label=name=value`")),
    }
}

fn before(text: &str) -> Result<Id, Error> {
    let id = text.parse();
    id.map_err(|_| from_wire::invalid(format!("invalid id in `before`: {text:?}")))
}
