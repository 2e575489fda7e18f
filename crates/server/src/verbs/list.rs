//! Listing processes, newest first, a page at a time.

use lastbyte_engine::{Filter, Id, PhaseIs, Session};
use lastbyte_wire::{Error, ListAnswer, ListQuery, Phase};

use crate::{App, from_wire, to_wire};

const USUAL: u64 = 100;

pub fn list(app: &App, query: &ListQuery) -> Result<ListAnswer, Error> {
    let filter = Filter {
        session: query.session.clone().map(Session),
        phase: query.phase.map(phase),
        label: query.label.as_deref().map(label).transpose()?,
    };
    let before = query.before.as_deref().map(before).transpose()?;
    let most = match query.limit.unwrap_or(USUAL) {
        0 => return Err(from_wire::invalid("`limit` must be greater than 0")),
        limit if limit > ListQuery::MOST => {
            return Err(from_wire::invalid(format!("`limit` is at most {}", ListQuery::MOST)));
        }
        limit => limit as usize,
    };
    let page = app.engine.list(&filter, before, most);
    let processes = page.processes.iter();
    Ok(ListAnswer {
        processes: processes
            .map(|(process, snapshot)| to_wire::process(process.about(), snapshot))
            .collect(),
        next: page.next.map(|id| id.to_string()),
    })
}

fn phase(phase: Phase) -> PhaseIs {
    match phase {
        Phase::Running => PhaseIs::Running,
        Phase::Draining => PhaseIs::Draining,
        Phase::Ended => PhaseIs::Ended,
    }
}

fn label(text: &str) -> Result<(String, String), Error> {
    match text.split_once('=') {
        Some((name, value)) => Ok((name.into(), value.into())),
        None => Err(from_wire::invalid(format!("the label {text:?} has no value"))
            .hint("give it as `label=name=value`")),
    }
}

fn before(text: &str) -> Result<Id, Error> {
    let id = text.parse();
    id.map_err(|_| from_wire::invalid(format!("`before` must be an id, and {text:?} is none")))
}
