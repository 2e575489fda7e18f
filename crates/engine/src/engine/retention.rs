//! Which ended processes are forgotten: pure arithmetic over times and sizes.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use crate::Id;
use crate::launch::Session;

/// How long ended processes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Nothing is forgotten sooner than this after its ending.
    pub at_least: Duration,
    /// Nothing is kept longer than this.
    pub at_most: Duration,
    pub per_session: usize,
    /// Of all logs together, in bytes.
    pub bytes: u64,
}

/// An ended process whose log is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) id: Id,
    pub(crate) session: Option<Session>,
    pub(crate) ended: SystemTime,
    /// What its log takes.
    pub(crate) bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            at_least: Duration::from_secs(10 * 60),
            at_most: Duration::from_secs(24 * 60 * 60),
            per_session: 200,
            bytes: 2 << 30,
        }
    }
}

impl Retention {
    /// Which of these are to be forgotten now, oldest first.
    pub(crate) fn forget(&self, mut candidates: Vec<Candidate>, now: SystemTime) -> Vec<Id> {
        candidates.sort_by_key(|candidate| (candidate.ended, candidate.id));
        let mut forgotten = HashSet::new();
        self.forget_old(&candidates, now, &mut forgotten);
        self.forget_past_count(&candidates, now, &mut forgotten);
        self.forget_past_bytes(&candidates, now, &mut forgotten);
        let ids = candidates.into_iter().map(|candidate| candidate.id);
        ids.filter(|id| forgotten.contains(id)).collect()
    }

    fn forget_old(&self, all: &[Candidate], now: SystemTime, forgotten: &mut HashSet<Id>) {
        let old = all.iter().filter(|candidate| age(candidate, now) > self.at_most);
        forgotten.extend(old.map(|candidate| candidate.id));
    }

    fn forget_past_count(&self, all: &[Candidate], now: SystemTime, forgotten: &mut HashSet<Id>) {
        let mut kept: HashMap<&Option<Session>, usize> = HashMap::new();
        // Newest first: the oldest are the ones past the count.
        for candidate in all
            .iter()
            .rev()
            .filter(|candidate| !forgotten.contains(&candidate.id))
            .collect::<Vec<_>>()
        {
            let count = kept.entry(&candidate.session).or_default();
            *count += 1;
            if *count > self.per_session && self.may_go(candidate, now) {
                forgotten.insert(candidate.id);
            }
        }
    }

    fn forget_past_bytes(&self, all: &[Candidate], now: SystemTime, forgotten: &mut HashSet<Id>) {
        let kept = all.iter().filter(|candidate| !forgotten.contains(&candidate.id));
        let mut total: u64 = kept.map(|candidate| candidate.bytes).sum();
        for candidate in all {
            if total <= self.bytes {
                return;
            }
            if !forgotten.contains(&candidate.id) && self.may_go(candidate, now) {
                total -= candidate.bytes;
                forgotten.insert(candidate.id);
            }
        }
    }

    fn may_go(&self, candidate: &Candidate, now: SystemTime) -> bool {
        age(candidate, now) >= self.at_least
    }
}

/// As many of these, oldest first, as it takes to be rid of so many bytes.
pub(crate) fn oldest_first(mut candidates: Vec<Candidate>, excess: u64) -> Vec<Id> {
    candidates.retain(|candidate| candidate.bytes > 0);
    candidates.sort_by_key(|candidate| (candidate.ended, candidate.id));
    let mut rid = 0;
    let needed = candidates.iter().take_while(|candidate| {
        let wanted = rid < excess;
        rid += candidate.bytes;
        wanted
    });
    needed.map(|candidate| candidate.id).collect()
}

/// A clock that was set back makes nothing older.
fn age(candidate: &Candidate, now: SystemTime) -> Duration {
    now.duration_since(candidate.ended).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Retention = Retention {
        at_least: Duration::from_secs(10),
        at_most: Duration::from_secs(100),
        per_session: 2,
        bytes: 1000,
    };

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + second)
    }

    fn candidate(session: &str, ended: u64, bytes: u64) -> Candidate {
        Candidate {
            id: Id::fresh(),
            session: Some(Session(session.into())),
            ended: at(ended),
            bytes,
        }
    }

    /// Which of the candidates, by index, are forgotten at this second.
    fn check(candidates: &[Candidate], now: u64, want: &[usize]) {
        let ids: Vec<Id> = want.iter().map(|index| candidates[*index].id).collect();
        assert_eq!(RULE.forget(candidates.to_vec(), at(now)), ids);
    }

    #[test]
    fn what_ended_a_moment_ago_is_kept_whatever_the_bounds_say() {
        let all: Vec<_> = (0..5).map(|n| candidate("a", n, 900)).collect();
        check(&all, 9, &[]);
    }

    #[test]
    fn the_oldest_of_a_session_go_first_and_other_sessions_do_not_count() {
        let all = [
            candidate("a", 0, 1),
            candidate("b", 1, 1),
            candidate("a", 2, 1),
            candidate("a", 3, 1),
            candidate("a", 4, 1),
        ];
        check(&all, 50, &[0, 2]);
    }

    #[test]
    fn what_is_too_old_goes_even_if_nothing_else_is_there() {
        let all = [candidate("a", 0, 1), candidate("a", 1, 1)];
        check(&all, 101, &[0]);
    }

    #[test]
    fn bytes_past_the_bound_go_oldest_first() {
        let all = [candidate("a", 0, 600), candidate("b", 1, 300), candidate("c", 2, 600)];
        check(&all, 50, &[0]);
    }

    #[test]
    fn room_is_made_by_the_oldest_that_have_any() {
        let all = [candidate("a", 3, 500), candidate("a", 1, 0), candidate("a", 2, 300)];
        assert_eq!(oldest_first(all.to_vec(), 0), []);
        assert_eq!(oldest_first(all.to_vec(), 300), [all[2].id]);
        assert_eq!(oldest_first(all.to_vec(), 301), [all[2].id, all[0].id]);
    }

    #[test]
    fn a_clock_that_jumps_back_forgets_nothing() {
        let all: Vec<_> = (0..5).map(|n| candidate("a", 500 + n, 900)).collect();
        check(&all, 0, &[]);
    }
}
