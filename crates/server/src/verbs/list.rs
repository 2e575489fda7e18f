//! Listing processes, newest first, a page at a time; and showing one.

use lastbyte_engine::{Id, Page, Process, survived};
use lastbyte_wire::{self as wire, Error, ListAnswer, ListQuery};

use super::select;
use crate::{App, from_wire, to_wire};

const USUAL: u64 = 100;

pub async fn list(app: &App, query: &ListQuery) -> Result<ListAnswer, Error> {
    let ListQuery { session, name, label, phase, failed, .. } = query;
    let named = (session.as_ref(), name.as_ref());
    let filter = select::filter(app, named, label.as_deref(), *phase, *failed)?;
    let before = query.before.as_deref().map(before).transpose()?;
    let most = from_wire::count("limit", query.limit.unwrap_or(USUAL), ListQuery::MOST)?;
    let page = app.engine.list(&filter, before, most);
    let survived = match query.survivors {
        Some(true) => Some(survived_of(&page).await),
        Some(false) | None => None,
    };
    let processes = page.processes.iter();
    Ok(ListAnswer {
        processes: processes
            .map(|(process, snapshot)| to_wire::process(process, snapshot))
            .collect(),
        next: page.next.map(|id| id.to_string()),
        survived,
        silent_nodes: None,
    })
}

/// The ended ones of which something lives: looked for together.
async fn survived_of(page: &Page) -> Vec<String> {
    let ended = page.processes.iter().filter(|(_, snapshot)| snapshot.ending().is_some());
    let survived = survived(ended.map(|(process, _)| process.clone()).collect()).await;
    survived.iter().map(|process| process.id().to_string()).collect()
}

/// One process at this instant.
pub fn show(process: &Process) -> wire::Process {
    to_wire::process(process, &process.snapshot())
}

/// The live processes of its tree.
pub async fn survivors(process: &Process) -> Vec<wire::Survivor> {
    process.survivors().await.into_iter().map(to_wire::survivor).collect()
}

pub(super) fn label(text: &str) -> Result<(String, String), Error> {
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
