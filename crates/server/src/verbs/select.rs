//! Which processes a request is about: one by whatever stands for its id, or several.

use std::cell::OnceCell;
use std::collections::HashSet;

use lastbyte_engine::{Filter, Name, PhaseKind, Process, Session, survived};
use lastbyte_wire::{Error, ErrorCode, Outcome, Phase, Selection};

use super::list;
use crate::App;
use crate::from_wire::invalid;

/// Finds processes by what stands for their ids: the whole id, `last`, a name, or a part of an id.
pub(crate) struct Finder<'a> {
    app: &'a App,
    /// All ids, newest first. Made once, when a part is looked for.
    ids: OnceCell<Vec<String>>,
}

/// A shorter part of an id would be a guess.
const SHORTEST_PART: usize = 4;
/// How many ids an error names.
const NAMED: usize = 5;
const LIST_THEM: &str = "list the processes with GET /v1/processes";

impl<'a> Finder<'a> {
    pub(crate) fn new(app: &'a App) -> Self {
        Self { app, ids: OnceCell::new() }
    }

    /// Its client is connected to the process from then on.
    pub(crate) fn find(&self, given: &str) -> Result<Process, Error> {
        self.find_unconnected(given).inspect(|process| self.app.client_of.add(process))
    }

    fn find_unconnected(&self, given: &str) -> Result<Process, Error> {
        if self.app.scope.only().is_some() {
            // Only by its whole id: a name or a part would tell of others.
            return self.app.process(given).ok_or_else(|| no_process(given));
        }
        if given == "last" {
            let within = self.app.session().cloned();
            let all = Filter { within, ..Filter::default() };
            let newest = self.app.engine.list(&all, None, 1).processes.pop();
            let none = || {
                Error::new(ErrorCode::ProcessNotFound, "there are no processes yet")
                    .hint("start one with POST /v1/processes")
            };
            return newest.map(|(newest, _)| newest).ok_or_else(none);
        }
        let whole = self.app.process(given);
        let named = || self.app.engine.named_within(&Name(given.into()), self.app.session());
        match whole.or_else(named) {
            Some(process) => Ok(process),
            None => self.find_by_part(given),
        }
    }

    fn find_by_part(&self, part: &str) -> Result<Process, Error> {
        let is_part = |byte: u8| byte == b'-' || byte.is_ascii_hexdigit();
        if part.len() < SHORTEST_PART || !part.bytes().all(is_part) {
            return Err(no_process(part));
        }
        let has_part = |id: &&String| id.starts_with(part) || id.ends_with(part);
        let found: Vec<&String> = self.ids().iter().filter(has_part).collect();
        match found.as_slice() {
            [] => Err(no_process(part)),
            // It may have been forgotten just now.
            [id] => self.app.process(id).ok_or_else(|| no_process(part)),
            several => Err(ambiguous(part, several)),
        }
    }

    fn ids(&self) -> &[String] {
        self.ids.get_or_init(|| {
            let ids = self.app.engine.ids(self.app.session());
            ids.into_iter().rev().map(|id| id.to_string()).collect()
        })
    }
}

fn no_process(given: &str) -> Error {
    let is_short = (1..SHORTEST_PART).contains(&given.len());
    let hint = if is_short && given.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        format!("a part of an id needs at least {SHORTEST_PART} characters; {LIST_THEM}")
    } else {
        LIST_THEM.to_owned()
    };
    Error::new(ErrorCode::ProcessNotFound, format!("no process with the id or name {given}"))
        .hint(hint)
}

fn ambiguous(part: &str, ids: &[&String]) -> Error {
    let named = ids.iter().take(NAMED).map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
    let more = match ids.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let count = ids.len();
    let message = format!("{count} process ids start or end with {part:?}: {named}{more}");
    Error::new(ErrorCode::AmbiguousId, message)
        .hint("ids share their beginning: give the last eight characters")
}

/// What a selection has found, in its order: a process, or what was given for one that is not there.
pub(crate) struct Selected(pub(crate) Vec<Result<Process, (String, Error)>>);

impl Selected {
    pub(crate) fn new(app: &App, selection: &Selection) -> Result<Self, Error> {
        let Selection { ids, all: _, session, label, name, phase, failed } = selection;
        let nothing = Selection { all: Some(false), ..Selection::default() };
        if *selection == Selection::default() || *selection == nothing {
            return Err(invalid("nothing is selected")
                .hint("give `ids`, a condition like `session`, or `\"all\": true`"));
        }
        let named = (session.as_ref(), name.as_ref());
        let filter = filter(app, named, label.as_deref(), *phase, *failed)?;
        let Some(ids) = ids else {
            let listed = app.engine.list(&filter, None, usize::MAX).processes;
            let listed = listed.into_iter().map(|(process, _)| process);
            let connected = listed.inspect(|process| app.client_of.add(process));
            return Ok(Self(connected.map(Ok).collect()));
        };
        if ids.len() > Selection::MOST_IDS {
            return Err(invalid(format!("`ids` has more than {} entries", Selection::MOST_IDS)));
        }
        let (finder, mut seen) = (Finder::new(app), HashSet::new());
        let found = ids.iter().map(|id| finder.find(id).map_err(|error| (id.clone(), error)));
        let wanted = found.filter(|found| match found {
            Ok(process) => filter.takes(process, &process.snapshot()) && seen.insert(process.id()),
            Err(_) => true,
        });
        Ok(Self(wanted.collect()))
    }

    /// Without the ended ones that nobody has survived: there is nobody to signal.
    pub(crate) async fn with_somebody(self) -> Self {
        let found = self.0.into_iter().filter_map(Result::ok);
        let has_ended = |process: &Process| process.snapshot().ending().is_some();
        let (ended, mut left): (Vec<_>, Vec<_>) = found.partition(has_ended);
        left.extend(survived(ended).await);
        left.sort_unstable_by_key(|process| std::cmp::Reverse(process.id()));
        Self(left.into_iter().map(Ok).collect())
    }
}

/// The conditions of a selection or a list, within what the client may see.
pub(crate) fn filter(
    app: &App,
    (session, name): (Option<&String>, Option<&String>),
    label: Option<&str>,
    phase: Option<Phase>,
    failed: Option<bool>,
) -> Result<Filter, Error> {
    Ok(Filter {
        within: app.session().cloned(),
        session: session.cloned().map(Session),
        phase: phase.map(phase_kind),
        label: label.map(list::label).transpose()?,
        name: name.cloned().map(Name),
        failed,
    })
}

fn phase_kind(phase: Phase) -> PhaseKind {
    match phase {
        Phase::Running => PhaseKind::Running,
        Phase::Draining => PhaseKind::Draining,
        Phase::Ended => PhaseKind::Ended,
        Phase::Lost => PhaseKind::Lost,
    }
}

/// Nothing has come of it yet.
pub(crate) fn outcome(process: &Process) -> Outcome {
    let spec = process.spec();
    Outcome {
        id: spec.id.to_string(),
        name: spec.name.as_ref().map(|name| name.0.clone()),
        ended_before: None,
        proof: None,
        delivered: None,
        error: None,
    }
}

/// There is no such process.
pub(crate) fn missing((id, error): (String, Error)) -> Outcome {
    let (name, ended_before, proof, delivered) = (None, None, None, None);
    Outcome { id, name, ended_before, proof, delivered, error: Some(error) }
}
