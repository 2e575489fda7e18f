//! The processes by id and by client key. Plain data: the engine has the lock.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::ops::Bound;

use tokio::sync::watch;

use super::index::{Ids, Index, end};
use super::list::{Filter, is_within};
use super::start::Outcome;
use crate::engine::PhaseKind;
use crate::journal::{FieldHashes, Fingerprint};
use crate::launch::{Key, Name, Session};
use crate::process::snapshot::Phase;
use crate::{Id, Process};

#[derive(Debug, Default)]
pub(super) struct ProcessMap {
    processes: BTreeMap<Id, Process>,
    keys: HashMap<Key, Keyed>,
    index: Index,
    /// The names of starts under way.
    starting_names: HashSet<TakenName>,
    /// How many starts are under way, by session.
    starting: HashMap<Option<Session>, usize>,
    pub(super) closed: bool,
}

/// A name of a start under way, and the session that it has to be unique in; `None` for all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TakenName {
    pub(super) name: Name,
    pub(super) within: Option<Session>,
}

/// A start with a key: what was launched, and its outcome once known.
#[derive(Debug, Clone)]
pub(super) struct Keyed {
    pub(super) fingerprint: Fingerprint,
    /// `None` if an earlier engine started it.
    pub(super) fields: Option<FieldHashes>,
    pub(super) outcome: watch::Receiver<Option<Outcome>>,
}

impl Keyed {
    /// What was started; `None` until it is.
    pub(super) fn process(&self) -> Option<Process> {
        let outcome = self.outcome.borrow();
        outcome.as_ref()?.as_ref().ok().map(|started| started.process.clone())
    }
}

/// Why a process was not forgotten.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    #[error("there is no process {id}")]
    NotFound { id: Id },
    #[error("the process {id} has not ended")]
    NotEnded { id: Id },
    #[error("the output of the process {id} is still held open")]
    Held { id: Id },
    #[error("cannot remove the log of the process {id}")]
    Remove { id: Id, source: io::Error },
}

impl ProcessMap {
    pub(super) fn get(&self, id: Id) -> Option<Process> {
        self.processes.get(&id).cloned()
    }

    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = &Process> {
        self.processes.values()
    }

    /// The processes started before the one with this id, newest first.
    pub(super) fn before(&self, id: Option<Id>) -> impl Iterator<Item = &Process> {
        self.processes.range((Bound::Unbounded, end(id))).rev().map(|(_, process)| process)
    }

    /// Those of them that can match the filter.
    pub(super) fn candidates<'a>(
        &'a self,
        filter: &Filter,
        before: Option<Id>,
    ) -> Box<dyn Iterator<Item = &'a Process> + 'a> {
        match self.index.candidates(filter, before) {
            Some(ids) => Box::new(self.found(ids)),
            None => Box::new(self.before(before)),
        }
    }

    /// Those that have not ended, newest first.
    pub(super) fn unended(&self) -> impl Iterator<Item = &Process> {
        self.found(self.index.unended(None)).filter(|process| !process.has_ended())
    }

    fn found<'a>(&'a self, ids: Ids<'a>) -> impl Iterator<Item = &'a Process> {
        ids.filter_map(|id| self.processes.get(&id))
    }

    /// Keeps the look at unended processes short.
    pub(super) fn drop_ended_from_index(&mut self) {
        let has_ended = |id| self.processes.get(&id).is_none_or(Process::has_ended);
        self.index.drop_ended(has_ended);
    }

    /// A start is under way, until its process is added or [`ProcessMap::start_failed`].
    pub(super) fn start_begins(&mut self, session: Option<Session>) {
        *self.starting.entry(session).or_default() += 1;
    }

    pub(super) fn start_failed(&mut self, session: &Option<Session>) {
        if let Some(count) = self.starting.get_mut(session) {
            *count -= 1;
            if *count == 0 {
                self.starting.remove(session);
            }
        }
    }

    /// How many starts are under way.
    pub(super) fn starting(&self) -> usize {
        self.starting.values().sum()
    }

    /// How many of them are in this session.
    pub(super) fn starting_in(&self, session: Option<&Session>) -> usize {
        let in_session = self.starting.iter().filter(|(of, _)| of.as_ref() == session);
        in_session.map(|(_, count)| count).sum()
    }

    /// Adds a process that was started. Returns whether the map is closed, in which case it must be
    /// stopped.
    pub(super) fn add(&mut self, process: &Process) -> bool {
        self.start_failed(&process.spec().session);
        self.insert(process.clone());
        self.closed
    }

    fn insert(&mut self, process: Process) {
        let (id, spec) = (process.id(), process.spec());
        self.index.insert(id, spec.name.as_ref(), spec.session.as_ref());
        if !process.has_ended() {
            self.index.insert_unended(id);
        }
        self.processes.insert(id, process);
    }

    /// The newest process with this name, of this session if one is given.
    pub(super) fn named(&self, name: &Name, within: Option<&Session>) -> Option<Process> {
        self.all_named(name).find(|process| is_within(process, within)).cloned()
    }

    /// Newest first.
    fn all_named(&self, name: &Name) -> impl Iterator<Item = &Process> {
        self.found(self.index.named(name, None))
    }

    /// Takes a name for a start, or tells which process has it; `None` if that is being started.
    /// A name that is taken within a session is compared with those of that session alone.
    pub(super) fn take_name(&mut self, taken: &TakenName) -> Result<(), Option<Id>> {
        let TakenName { name, within } = taken;
        let runs = |holder: &Process| holder.phase() == PhaseKind::Running;
        let own = |holder: &&Process| runs(holder) && is_within(holder, within.as_ref());
        let holder = self.all_named(name).find(own).map(|holder| holder.id());
        if holder.is_some() {
            return Err(holder);
        }
        if self.starting_names.insert(taken.clone()) { Ok(()) } else { Err(None) }
    }

    /// The start is over: its process has the name, or nobody.
    pub(super) fn release_name(&mut self, taken: &TakenName) {
        self.starting_names.remove(taken);
    }

    pub(super) fn keyed(&self, key: &Key) -> Option<Keyed> {
        self.keys.get(key).cloned()
    }

    pub(super) fn reserve(&mut self, key: Key, keyed: Keyed) {
        self.keys.insert(key, keyed);
    }

    pub(super) fn release(&mut self, key: &Key) {
        self.keys.remove(key);
    }

    /// The process, if it may be forgotten.
    fn forgettable(&self, id: Id) -> Result<Process, ForgetError> {
        let process = self.processes.get(&id).ok_or(ForgetError::NotFound { id })?;
        let snapshot = process.snapshot();
        match snapshot.phase {
            Phase::Running | Phase::Draining => return Err(ForgetError::NotEnded { id }),
            Phase::Ended(_) if snapshot.log_open => return Err(ForgetError::Held { id }),
            // Nothing could stop it afterwards.
            Phase::Ended(_) if process.runs_unseen().is_some() => {
                return Err(ForgetError::NotEnded { id });
            }
            Phase::Ended(_) => {}
        }
        Ok(process.clone())
    }

    /// Removes a process and its key, if it may be forgotten.
    pub(super) fn take_out(&mut self, id: Id) -> Result<(Process, Option<Keyed>), ForgetError> {
        let process = self.forgettable(id)?;
        self.processes.remove(&id);
        let spec = process.spec();
        self.index.remove(id, spec.name.as_ref(), spec.session.as_ref());
        // After [`ProcessMap::put_back`], another process may have the key.
        let is_own = |keyed: &Keyed| keyed.process().is_none_or(|other| other.id() == id);
        let key = spec.key.as_ref().filter(|key| self.keys.get(*key).is_some_and(is_own));
        let keyed = key.and_then(|key| self.keys.remove(key));
        Ok((process, keyed))
    }

    /// Undoes that. If the key was taken meanwhile, it stays with its new process.
    pub(super) fn put_back(&mut self, process: Process, keyed: Option<Keyed>) {
        if let (Some(key), Some(keyed)) = (process.spec().key.clone(), keyed) {
            self.keys.entry(key).or_insert(keyed);
        }
        self.insert(process);
    }
}
