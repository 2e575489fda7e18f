//! Processes that a cancelled call has left running, until the next answer of their session says so.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use lastbyte_engine::{Id, Session};

/// Cheap to lose: `list_processes` shows these processes too.
#[derive(Debug, Default)]
pub(super) struct Abandoned(Mutex<VecDeque<(Option<Session>, Id)>>);

/// Of all sessions together. The oldest is forgotten first.
const MOST: usize = 256;

impl Abandoned {
    pub(super) fn add(&self, session: Option<&Session>, id: Id) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if calls.len() == MOST {
            calls.pop_front();
        }
        calls.push_back((session.cloned(), id));
    }

    /// Those of this session, once.
    pub(super) fn take(&self, session: Option<&Session>) -> Vec<Id> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = Vec::new();
        calls.retain(|(of, id)| {
            let keep = of.as_ref() != session;
            if !keep && !taken.contains(id) {
                taken.push(*id);
            }
            keep
        });
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_hears_of_its_own_once_and_the_oldest_are_forgotten() {
        let abandoned = Abandoned::default();
        let (a, b) = (Session("a".into()), Session("b".into()));
        let id: Id = "01997f6e-0000-7000-8000-00000000000a".parse().unwrap();
        abandoned.add(Some(&a), id);
        abandoned.add(Some(&a), id);
        assert_eq!(abandoned.take(Some(&b)), []);
        assert_eq!(abandoned.take(None), []);
        assert_eq!(abandoned.take(Some(&a)), [id]);
        assert_eq!(abandoned.take(Some(&a)), []);
        abandoned.add(Some(&b), id);
        (0..MOST).for_each(|_| abandoned.add(Some(&a), id));
        assert_eq!(abandoned.take(Some(&b)), []);
    }
}
