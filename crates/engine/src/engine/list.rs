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

/// How many processes are in each phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    pub running: u64,
    pub draining: u64,
    pub ended: u64,
}

impl Engine {
    /// How many processes there are, by phase. Each is looked at after the map was left to others.
    pub fn phases(&self) -> Phases {
        let all: Vec<Process> = self.inner.registry().all().cloned().collect();
        let mut phases = Phases::default();
        for process in all {
            *phases.of(process.phase()) += 1;
        }
        phases
    }

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

    /// At most `most` processes, of this session if one is named: those that have not ended, newest
    /// first, then those that have.
    pub fn unended_first(
        &self,
        session: Option<&Session>,
        most: usize,
    ) -> Vec<(Process, Snapshot)> {
        let (mut listed, mut ended) = (Vec::new(), Vec::new());
        let registry = self.inner.registry();
        let of_session = |process: &&Process| {
            session.is_none_or(|session| process.about().session.as_ref() == Some(session))
        };
        for process in registry.before(None).filter(of_session) {
            if listed.len() == most {
                break;
            }
            // Most have ended, and most of those are not listed: only what is gets copied.
            match process.has_ended() {
                true if ended.len() == most => {}
                true => ended.push((process.clone(), process.snapshot())),
                false => listed.push((process.clone(), process.snapshot())),
            }
        }
        listed.extend(ended);
        listed.truncate(most);
        listed
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

impl Phases {
    pub fn all(&self) -> u64 {
        self.running + self.draining + self.ended
    }

    fn of(&mut self, phase: PhaseIs) -> &mut u64 {
        match phase {
            PhaseIs::Running => &mut self.running,
            PhaseIs::Draining => &mut self.draining,
            PhaseIs::Ended => &mut self.ended,
        }
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
