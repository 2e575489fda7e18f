//! Decides which ended processes to forget: pure arithmetic on times and sizes.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

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
    /// For all sessions together. Above this the oldest are forgotten regardless of age, because
    /// each takes some memory.
    pub in_all: usize,
    /// For all logs together, in bytes.
    pub bytes: u64,
}

/// An ended process whose log is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) id: Id,
    pub(crate) session: Option<Session>,
    /// How long ago it ended.
    pub(crate) age: Duration,
    /// The size of its log.
    pub(crate) bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            at_least: Duration::from_secs(10 * 60),
            at_most: Duration::from_secs(24 * 60 * 60),
            per_session: 200,
            in_all: 10_000,
            bytes: 2 << 30,
        }
    }
}

impl Retention {
    /// The maximum age of a process from an earlier engine. Only the wall clock says how long ago
    /// it ended, and that may have been set. So nothing is forgotten for its age soon after a
    /// start.
    pub(crate) fn oldest_at_start(&self) -> Duration {
        self.at_most / 2
    }

    /// The candidates to forget, oldest first.
    pub(crate) fn forget(&self, mut candidates: Vec<Candidate>) -> Vec<Id> {
        sort_oldest_first(&mut candidates);
        let mut forgotten = HashSet::new();
        self.forget_old(&candidates, &mut forgotten);
        self.forget_past_count(&candidates, &mut forgotten);
        self.forget_past_bytes(&candidates, &mut forgotten);
        self.forget_past_all(&candidates, &mut forgotten);
        let ids = candidates.into_iter().map(|candidate| candidate.id);
        ids.filter(|id| forgotten.contains(id)).collect()
    }

    fn forget_old(&self, all: &[Candidate], forgotten: &mut HashSet<Id>) {
        let old = all.iter().filter(|candidate| candidate.age > self.at_most);
        forgotten.extend(old.map(|candidate| candidate.id));
    }

    fn forget_past_all(&self, all: &[Candidate], forgotten: &mut HashSet<Id>) {
        let kept = all.iter().filter(|candidate| !forgotten.contains(&candidate.id));
        let kept: Vec<Id> = kept.map(|candidate| candidate.id).collect();
        forgotten.extend(&kept[..kept.len().saturating_sub(self.in_all)]);
    }

    fn forget_past_count(&self, all: &[Candidate], forgotten: &mut HashSet<Id>) {
        let mut kept: HashMap<&Option<Session>, usize> = HashMap::new();
        // Newest first: the oldest are the ones above the limit.
        for candidate in all.iter().rev() {
            if forgotten.contains(&candidate.id) {
                continue;
            }
            let count = kept.entry(&candidate.session).or_default();
            *count += 1;
            if *count > self.per_session && self.may_go(candidate) {
                forgotten.insert(candidate.id);
            }
        }
    }

    fn forget_past_bytes(&self, all: &[Candidate], forgotten: &mut HashSet<Id>) {
        let kept = all.iter().filter(|candidate| !forgotten.contains(&candidate.id));
        let mut total: u64 = kept.map(|candidate| candidate.bytes).sum();
        for candidate in all {
            if total <= self.bytes {
                return;
            }
            if !forgotten.contains(&candidate.id) && self.may_go(candidate) {
                total -= candidate.bytes;
                forgotten.insert(candidate.id);
            }
        }
    }

    fn may_go(&self, candidate: &Candidate) -> bool {
        candidate.age >= self.at_least
    }
}

/// As many of these, oldest first, as it takes to free `excess` bytes.
pub(crate) fn oldest_first(mut candidates: Vec<Candidate>, excess: u64) -> Vec<Id> {
    candidates.retain(|candidate| candidate.bytes > 0);
    sort_oldest_first(&mut candidates);
    let mut freed = 0;
    let needed = candidates.iter().take_while(|candidate| {
        let wanted = freed < excess;
        freed += candidate.bytes;
        wanted
    });
    needed.map(|candidate| candidate.id).collect()
}

fn sort_oldest_first(candidates: &mut [Candidate]) {
    candidates.sort_by_key(|candidate| (Reverse(candidate.age), candidate.id));
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Retention = Retention {
        at_least: Duration::from_secs(10),
        at_most: Duration::from_secs(100),
        per_session: 2,
        in_all: 6,
        bytes: 1000,
    };

    /// A candidate that ended at this second.
    fn candidate(session: &str, ended: u64, bytes: u64) -> (u64, Candidate) {
        let session = Some(Session(session.into()));
        (ended, Candidate { id: Id::fresh(), session, age: Duration::ZERO, bytes })
    }

    fn at(now: u64, candidates: &[(u64, Candidate)]) -> Vec<Candidate> {
        let age = |ended: &u64| Duration::from_secs(now.saturating_sub(*ended));
        let aged = |(ended, one): &(u64, Candidate)| Candidate { age: age(ended), ..one.clone() };
        candidates.iter().map(aged).collect()
    }

    /// Which of the candidates, by index, are forgotten at this second.
    fn check(candidates: &[(u64, Candidate)], now: u64, want: &[usize]) {
        let ids: Vec<Id> = want.iter().map(|index| candidates[*index].1.id).collect();
        assert_eq!(RULE.forget(at(now, candidates)), ids);
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
        let (all, ids) = (at(9, &all), all.map(|(_, one)| one.id));
        assert_eq!(oldest_first(all.clone(), 0), []);
        assert_eq!(oldest_first(all.clone(), 300), [ids[2]]);
        assert_eq!(oldest_first(all, 301), [ids[2], ids[0]]);
    }

    #[test]
    fn past_the_bound_for_all_the_oldest_go_however_young_they_are() {
        let all: Vec<_> = (0..8).map(|n| candidate(&n.to_string(), n, 0)).collect();
        check(&all, 8, &[0, 1]);
        check(&all[..6], 8, &[]);
        // What is forgotten for another reason counts, too.
        check(&all, 102, &[0, 1]);
    }
}
