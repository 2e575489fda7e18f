//! The marks that members of a tree share, and the list of this program's trees.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use lastbyte_sys::procfs::{self, Stat};
use lastbyte_sys::tag::{self, Tag};

use crate::Id;
use crate::launch::environment::COOKIE;

/// Identifies the processes of one tree.
#[derive(Debug)]
pub(super) struct Marks {
    pub(super) id: Id,
    pub(super) leader: i32,
    /// Together with the pid this identifies the leader for good. `None` if it was not read.
    leader_start: Option<u64>,
    /// When this program began to start the leader. `None` for a tree of an earlier program.
    pub(super) since: Option<u64>,
    pub(super) tag: Option<Tag>,
    /// The value of `LASTBYTE_ID`, which children inherit. It counts only without a tag.
    pub(super) cookie: Box<[u8]>,
    /// Pid and start time of the members seen while the leader was unreaped. Some of them may have
    /// dropped their marks since.
    known: OnceLock<HashSet<(i32, u64)>>,
}

/// The marks of a tree that are chosen before its leader starts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Birth {
    pub(super) tag: Option<Tag>,
    pub(super) since: u64,
}

/// The trees of this program that have a handle, of all its engines, by the address of their marks.
/// Locked only for a change or a copy.
static TREES: Mutex<BTreeMap<usize, Weak<Marks>>> = Mutex::new(BTreeMap::new());

impl Birth {
    pub(super) fn next() -> Self {
        Self { tag: Tag::next(), since: procfs::now() }
    }

    /// Of a leader that an earlier worker started.
    pub(super) fn again((tag, since): (Option<Tag>, u64)) -> Self {
        Self { tag, since }
    }
}

impl Marks {
    /// `birth` is `None` for a leader that an earlier program started: its pid may have been reused.
    /// With its start time, an unreaped leader is also identified by its session and group.
    pub(super) fn new(
        leader: i32,
        id: Id,
        birth: Option<Birth>,
        leader_start: Option<u64>,
    ) -> Arc<Self> {
        let marks = Arc::new(Self {
            id,
            leader,
            leader_start,
            since: birth.map(|birth| birth.since),
            tag: birth.and_then(|birth| birth.tag),
            cookie: id.to_string().into_bytes().into(),
            known: OnceLock::new(),
        });
        let address = Arc::as_ptr(&marks).addr();
        trees().insert(address, Arc::downgrade(&marks));
        marks
    }

    /// Remembers these members after the leader is reaped.
    pub(super) fn remember(&self, members: &[Stat]) {
        self.known.get_or_init(|| members.iter().map(|stat| (stat.pid, stat.start_time)).collect());
    }

    /// The leader, and the members that were remembered.
    pub(super) fn known(&self) -> impl Iterator<Item = (i32, u64)> {
        let leader = self.leader_start.map(|start| (self.leader, start));
        self.known.get().into_iter().flatten().copied().chain(leader)
    }

    /// Whether the leader is unreaped, so its pid identifies its session and group.
    pub(super) fn leader_is_there(&self) -> bool {
        let now = procfs::read_stat(self.leader).ok().map(|stat| stat.start_time);
        now.is_some() && now == self.leader_start
    }

    /// Whether the leader is alive. Its pid may be another's, so it counts only with its start time.
    pub(super) fn leader_runs(&self) -> bool {
        let runs = |stat: Stat| stat.alive() && Some(stat.start_time) == self.leader_start;
        procfs::read_stat(self.leader).is_ok_and(runs)
    }

    /// Whether the process itself has these marks.
    pub(super) fn are_on(&self, pid: i32) -> io::Result<bool> {
        match (Tag::from_pid(pid)?, self.tag) {
            (Some(tag), own) => Ok(Some(tag) == own),
            // Anyone can have a cookie in its environment, so it counts only without a tag.
            (None, Some(_)) => Ok(false),
            (None, None) => {
                Ok(procfs::initial_env(pid, COOKIE)?.is_some_and(|id| *id == *self.cookie))
            }
        }
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        trees().remove(&ptr::from_ref(self).addr());
    }
}

pub(super) fn all() -> Vec<Arc<Marks>> {
    trees().values().filter_map(Weak::upgrade).collect()
}

/// Whether this is the only tree that this program, or a worker before it, has ever begun to start.
/// Tags are counted before the clone, because a leader may have orphans before it is among the trees.
pub(super) fn is_only(marks: &Marks) -> bool {
    marks.since.is_some() && tag::count() == 1
}

/// That tree, if there is just one: every adopted orphan belongs to it.
pub(super) fn only(trees: &[Arc<Marks>]) -> Option<Id> {
    trees.iter().find(|marks| is_only(marks)).map(|marks| marks.id)
}

fn trees() -> MutexGuard<'static, BTreeMap<usize, Weak<Marks>>> {
    // Every update is complete in itself, so a poisoned lock is usable.
    TREES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastbyte_sys::registry::Registry;
    use std::sync::atomic::Ordering;

    #[test]
    fn a_tree_is_not_the_only_one_while_another_is_being_started() {
        let first = Marks::new(i32::MAX, Id::fresh(), Some(Birth::next()), None);
        let _starting = Birth::next();
        assert!(!is_only(&first), "an orphan may be of the second");
    }

    #[test]
    fn a_tree_that_was_taken_over_is_not_the_only_one_if_an_earlier_worker_had_others() {
        let (registry, _file) = Registry::create().unwrap();
        // What the workers before this one have counted.
        registry.header().tags[1].store(2, Ordering::SeqCst);
        tag::go_on(registry.header());
        let again = Some(Birth::again((None, 0)));
        let taken_over = Marks::new(i32::MAX, Id::fresh(), again, None);
        assert!(!is_only(&taken_over), "an orphan may be of the other");
    }
}
