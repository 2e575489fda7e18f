//! Listing: newest first, filtered, a page at a time.

use super::Engine;
use crate::launch::{Key, Session};
use crate::snapshot::{Phase, Snapshot};
use crate::{Id, Process};

/// Which processes are listed; the default is all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    pub session: Option<Session>,
    pub phase: Option<PhaseIs>,
    /// A label and its value.
    pub label: Option<(String, String)>,
}

/// A phase without what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseIs {
    Running,
    Draining,
    Ended,
}

/// Some processes, each with its state at one instant.
#[derive(Debug, Clone)]
pub struct Page {
    pub processes: Vec<(Process, Snapshot)>,
    /// Where the next page begins; `None` when this is the last.
    pub next: Option<Id>,
}

impl Engine {
    /// At most `most` processes that were started before `before`.
    pub fn list(&self, filter: &Filter, before: Option<Id>, most: usize) -> Page {
        let registry = self.inner.registry();
        let all = registry.before(before).map(|process| (process.clone(), process.snapshot()));
        let mut matching = all.filter(|(process, snapshot)| filter.takes(process, snapshot));
        let processes: Vec<_> = matching.by_ref().take(most).collect();
        let more = matching.next().is_some();
        let next = processes.last().filter(|_| more).map(|(process, _)| process.id());
        Page { processes, next }
    }

    /// The process that a start with this key has started.
    pub fn keyed(&self, key: &Key) -> Option<Process> {
        let registry = self.inner.registry();
        registry.all().find(|process| process.about().key.as_ref() == Some(key)).cloned()
    }
}

impl Filter {
    fn takes(&self, process: &Process, snapshot: &Snapshot) -> bool {
        let about = process.about();
        let label = |(name, value): &(String, String)| about.labels.get(name) == Some(value);
        self.session.as_ref().is_none_or(|session| about.session.as_ref() == Some(session))
            && self.phase.is_none_or(|phase| phase == PhaseIs::of(&snapshot.phase))
            && self.label.as_ref().is_none_or(label)
    }
}

impl PhaseIs {
    pub fn of(phase: &Phase) -> Self {
        match phase {
            Phase::Running => Self::Running,
            Phase::Draining => Self::Draining,
            Phase::Ended(_) => Self::Ended,
        }
    }
}
