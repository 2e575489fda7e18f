//! Which processes a list has to look at, so that its cost does not grow with what has ended.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::list::{Filter, PhaseKind};
use crate::Id;
use crate::launch::{Name, Session};

/// Ids by name, by session, and of what has not ended.
#[derive(Debug, Default)]
pub(super) struct Index {
    names: BTreeSet<(Name, Id)>,
    sessions: BTreeSet<(Session, Id)>,
    /// Every process that has not ended, and those that have since the last [`Index::drop_ended`].
    unended: BTreeSet<Id>,
}

/// Ids, newest first.
pub(super) type Ids<'a> = Box<dyn Iterator<Item = Id> + 'a>;

impl Index {
    pub(super) fn insert(&mut self, id: Id, name: Option<&Name>, session: Option<&Session>) {
        self.names.extend(name.map(|name| (name.clone(), id)));
        self.sessions.extend(session.map(|session| (session.clone(), id)));
    }

    pub(super) fn insert_unended(&mut self, id: Id) {
        self.unended.insert(id);
    }

    pub(super) fn remove(&mut self, id: Id, name: Option<&Name>, session: Option<&Session>) {
        self.unended.remove(&id);
        if let Some(name) = name {
            self.names.remove(&(name.clone(), id));
        }
        if let Some(session) = session {
            self.sessions.remove(&(session.clone(), id));
        }
    }

    /// An ending does not tell the index: this is called from time to time.
    pub(super) fn drop_ended(&mut self, has_ended: impl Fn(Id) -> bool) {
        self.unended.retain(|id| !has_ended(*id));
    }

    pub(super) fn named(&self, name: &Name, before: Option<Id>) -> Ids<'_> {
        range(&self.names, name, before)
    }

    pub(super) fn of_session(&self, session: &Session, before: Option<Id>) -> Ids<'_> {
        range(&self.sessions, session, before)
    }

    /// May contain some that have ended.
    pub(super) fn unended(&self, before: Option<Id>) -> Ids<'_> {
        Box::new(self.unended.range((Bound::Unbounded, end(before))).rev().copied())
    }

    /// The processes that can match the filter; `None` if all can.
    pub(super) fn candidates(&self, filter: &Filter, before: Option<Id>) -> Option<Ids<'_>> {
        if let Some(name) = &filter.name {
            return Some(self.named(name, before));
        }
        if let Some(PhaseKind::Running | PhaseKind::Draining) = filter.phase {
            return Some(self.unended(before));
        }
        let session = filter.within.as_ref().or(filter.session.as_ref());
        session.map(|session| self.of_session(session, before))
    }
}

pub(super) fn end(before: Option<Id>) -> Bound<Id> {
    before.map_or(Bound::Unbounded, Bound::Excluded)
}

fn range<'a, T: Ord + Clone>(set: &'a BTreeSet<(T, Id)>, value: &T, before: Option<Id>) -> Ids<'a> {
    let first = Bound::Included((value.clone(), Id::from_number(0)));
    let last = match before {
        Some(id) => Bound::Excluded((value.clone(), id)),
        None => Bound::Included((value.clone(), Id::from_number(u128::MAX))),
    };
    Box::new(set.range((first, last)).rev().map(|(_, id)| *id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u128) -> Id {
        Id::from_number(number)
    }

    /// 100 processes: every tenth is in session `s`, number 55 alone has not ended and has a name.
    fn index() -> Index {
        let mut index = Index::default();
        for number in 0..100_u128 {
            let session = number.is_multiple_of(10).then(|| Session("s".into()));
            let name = (number == 55).then(|| Name("web".into()));
            index.insert(id(number), name.as_ref(), session.as_ref());
            index.insert_unended(id(number));
        }
        index.drop_ended(|ended| ended != id(55));
        index
    }

    fn check(filter: Filter, before: Option<u128>, want: &[u128]) {
        let index = index();
        let found = index.candidates(&filter, before.map(id)).map(Iterator::collect::<Vec<_>>);
        assert_eq!(found, Some(want.iter().copied().map(id).collect()), "{filter:?}");
    }

    #[test]
    fn running_processes_are_found_without_a_look_at_ended_ones() {
        let running = Filter { phase: Some(PhaseKind::Running), ..Filter::default() };
        check(running.clone(), None, &[55]);
        check(running.clone(), Some(55), &[]);
        check(Filter { session: Some(Session("s".into())), ..running }, None, &[55]);
    }

    #[test]
    fn a_session_is_found_without_a_look_at_others() {
        let session = Filter { session: Some(Session("s".into())), ..Filter::default() };
        check(session.clone(), Some(30), &[20, 10, 0]);
        let within = Filter { within: Some(Session("t".into())), ..session };
        check(within, None, &[]);
    }

    #[test]
    fn a_name_is_found_until_its_process_is_removed() {
        let web = Filter { name: Some(Name("web".into())), ..Filter::default() };
        check(web.clone(), None, &[55]);
        let mut index = index();
        index.remove(id(55), web.name.as_ref(), None);
        assert_eq!(index.candidates(&web, None).map(Iterator::count), Some(0));
        assert_eq!(index.unended(None).count(), 0);
    }

    #[test]
    fn no_condition_means_all() {
        assert!(index().candidates(&Filter::default(), None).is_none());
    }
}
