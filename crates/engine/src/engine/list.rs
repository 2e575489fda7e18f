//! Listing: newest first, filtered, one page at a time.

use std::collections::HashSet;

use super::Engine;
use crate::launch::{Key, Name, Session};
use crate::process::snapshot::{Phase, Snapshot};
use crate::{Id, Process};

/// Which processes to list; the default is all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only of this session, whatever `session` says: the bound of a client.
    pub within: Option<Session>,
    pub session: Option<Session>,
    pub phase: Option<PhaseKind>,
    /// A label and its value.
    pub label: Option<(String, String)>,
    pub name: Option<Name>,
    /// Whether the ending says that it failed; one that has not ended has not.
    pub failed: Option<bool>,
}

/// A phase without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseKind {
    Running,
    Draining,
    Ended,
    /// Nobody saw the end; it may still run.
    Lost,
}

/// Processes, each with its state at one moment.
#[derive(Debug, Clone)]
pub struct Page {
    pub processes: Vec<(Process, Snapshot)>,
    /// Where the next page begins; `None` if this is the last.
    pub next: Option<Id>,
}

/// How many processes are in each phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Phases {
    pub running: u64,
    pub draining: u64,
    pub ended: u64,
    pub lost: u64,
}

impl Engine {
    /// How many processes are in each phase.
    pub fn phases(&self) -> Phases {
        self.phases_within(None)
    }

    /// How many processes, of this session if one is given, are in each phase. Reads them after the lock on the map is
    /// released.
    pub fn phases_within(&self, within: Option<&Session>) -> Phases {
        let all: Vec<Process> = self.inner.processes().all().cloned().collect();
        let mut phases = Phases::default();
        for process in all.iter().filter(|process| is_within(process, within)) {
            *phases.count_mut(process.phase()) += 1;
        }
        phases
    }

    /// At most `most` processes that were started before `before`.
    pub fn list(&self, filter: &Filter, before: Option<Id>, most: usize) -> Page {
        let processes = self.inner.processes();
        let candidates = processes.candidates(filter, before);
        let known = candidates.map(|process| (process.clone(), process.snapshot()));
        let mut matching = known.filter(|(process, snapshot)| filter.takes(process, snapshot));
        let processes: Vec<_> = matching.by_ref().take(most).collect();
        let more = matching.next().is_some();
        let next = processes.last().filter(|_| more).map(|(process, _)| process.id());
        Page { processes, next }
    }

    /// At most `most` processes, of this session if one is given: first those that have not ended,
    /// newest first, then those that have.
    pub fn unended_first(
        &self,
        session: Option<&Session>,
        most: usize,
    ) -> Vec<(Process, Snapshot)> {
        let of_session = Filter { within: session.cloned(), ..Filter::default() };
        let processes = self.inner.processes();
        let with_snapshot = |process: &Process| (process.clone(), process.snapshot());
        let unended = processes.unended().filter(|process| is_within(process, session));
        let mut listed: Vec<_> = unended.take(most).map(with_snapshot).collect();
        // One of those may end before the second look.
        let seen: HashSet<Id> = listed.iter().map(|(process, _)| process.id()).collect();
        let is_ended = |process: &&Process| process.has_ended() && !seen.contains(&process.id());
        let ended = processes.candidates(&of_session, None).filter(is_ended);
        listed.extend(ended.take(most - seen.len()).map(with_snapshot));
        listed
    }

    /// The newest process with this name.
    pub fn named(&self, name: &Name) -> Option<Process> {
        self.named_within(name, None)
    }

    /// The same within a session, if one is given.
    pub fn named_within(&self, name: &Name, within: Option<&Session>) -> Option<Process> {
        self.inner.processes().named(name, within)
    }

    /// The ids of all processes, oldest first; with a session, of those in that one.
    pub fn ids(&self, within: Option<&Session>) -> Vec<Id> {
        let processes = self.inner.processes();
        processes.all().filter(|process| is_within(process, within)).map(Process::id).collect()
    }

    /// The process that was started with this key.
    pub fn keyed(&self, key: &Key) -> Option<Process> {
        self.inner.processes().keyed(key)?.process()
    }
}

/// Whether a process is of this session, if one is given.
pub(super) fn is_within(process: &Process, within: Option<&Session>) -> bool {
    within.is_none_or(|session| process.spec().session.as_ref() == Some(session))
}

impl Filter {
    /// Whether this process is one of them, as it was in this snapshot.
    pub fn takes(&self, process: &Process, snapshot: &Snapshot) -> bool {
        let spec = process.spec();
        let label = |(name, value): &(String, String)| spec.labels.get(name) == Some(value);
        let of = |session: &Session| spec.session.as_ref() == Some(session);
        self.within.as_ref().is_none_or(of)
            && self.session.as_ref().is_none_or(of)
            && self.phase.is_none_or(|phase| phase == PhaseKind::from(&snapshot.phase))
            && self.label.as_ref().is_none_or(label)
            && self.name.as_ref().is_none_or(|name| spec.name.as_ref() == Some(name))
            && self.failed.is_none_or(|failed| failed == has_failed(snapshot))
    }
}

fn has_failed(snapshot: &Snapshot) -> bool {
    snapshot.ending().is_some_and(|ending| ending.failed())
}

impl Phases {
    pub fn all(&self) -> u64 {
        self.running + self.draining + self.ended + self.lost
    }

    fn count_mut(&mut self, phase: PhaseKind) -> &mut u64 {
        match phase {
            PhaseKind::Running => &mut self.running,
            PhaseKind::Draining => &mut self.draining,
            PhaseKind::Ended => &mut self.ended,
            PhaseKind::Lost => &mut self.lost,
        }
    }
}

impl From<&Phase> for PhaseKind {
    fn from(phase: &Phase) -> Self {
        match phase {
            Phase::Running => Self::Running,
            Phase::Draining => Self::Draining,
            Phase::Ended(ending) if ending.was_seen() => Self::Ended,
            Phase::Ended(_) => Self::Lost,
        }
    }
}
