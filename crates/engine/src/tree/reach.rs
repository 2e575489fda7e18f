//! The ways to reach a tree, and the one that an engine uses.

use std::ffi::CString;
use std::io;
use std::sync::Arc;

use lastbyte_sys::cgroup::{self, Cgroup, CgroupLimits, Controller};
use lastbyte_sys::procfs::{self, Stat};
use lastbyte_sys::spawn::Mechanism;
use lastbyte_sys::tag::Tag;

use super::cgroup_pool::CgroupPool;
use super::lease::Lease;
use super::marks::{Birth, Marks};
use super::members::{Tree, Way};
use super::scans::Scans;
use crate::Id;
use crate::launch::environment::COOKIE;

/// How the members of a tree are found and stopped, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// By its own cgroup, which no fork escapes. Processes that have left it are found by a scan.
    Cgroup,
    /// By repeated scans of all processes: parent, session, group, tag and cookie.
    Scan,
    /// Only the leader's group. Processes that left it are reported, not signalled.
    Group,
}

/// Which of them an engine uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReachChoice {
    #[default]
    Best,
    /// Only this one. Creating the engine fails if it is not available.
    Only(Reach),
}

/// How an engine reaches its trees.
#[derive(Debug)]
pub(crate) struct Trees {
    choice: ReachChoice,
    /// `Some` if trees are reached by cgroup.
    pool: Option<Arc<CgroupPool>>,
    pub(crate) reach: Reach,
    scans: Arc<Scans>,
}

/// Prepares a tree before its leader exists. Dropping it before then kills any process in its cgroup.
#[derive(Debug)]
pub(crate) struct Seed {
    way: Option<Way>,
    /// Those that enforce a limit on it.
    controllers: Vec<Controller>,
    birth: Birth,
    scans: Arc<Scans>,
}

impl Trees {
    /// Probes what this machine supports, and removes the leftovers of our dead runs.
    pub(crate) fn new(choice: ReachChoice, mechanism: Mechanism) -> io::Result<Self> {
        let (reach, pool) = match choice {
            ReachChoice::Best => match grow_pool(mechanism) {
                Ok(pool) => (Reach::Cgroup, Some(pool)),
                Err(_) if can_scan() => (Reach::Scan, None),
                Err(_) => (Reach::Group, None),
            },
            ReachChoice::Only(Reach::Cgroup) => (Reach::Cgroup, Some(grow_pool(mechanism)?)),
            ReachChoice::Only(reach @ (Reach::Scan | Reach::Group)) => (reach, None),
        };
        Ok(Self { choice, pool: pool.map(Arc::new), reach, scans: Arc::default() })
    }

    /// Prepares one more tree, with these limits as far as its cgroup enforces them.
    pub(crate) fn seed(&self, limits: Option<CgroupLimits>) -> io::Result<Seed> {
        let (way, controllers) = match (&self.pool, limits, self.reach) {
            (Some(pool), None, _) => (Way::Cgroup(Arc::new(Lease::new(pool)?)), vec![]),
            (Some(pool), Some(limits), _) => {
                let (lease, controllers) = Lease::limited(pool, limits)?;
                (Way::Cgroup(Arc::new(lease)), controllers)
            }
            (None, _, Reach::Group) => (Way::Group, vec![]),
            (None, _, Reach::Cgroup | Reach::Scan) => (Way::Scan, vec![]),
        };
        let mut seed = self.seed_with(way);
        seed.controllers = controllers;
        Ok(seed)
    }

    /// Prepares a tree that cannot have a cgroup; `None` if it must have one.
    pub(crate) fn seed_without_cgroup(&self) -> Option<Seed> {
        match self.choice {
            ReachChoice::Best => Some(self.seed_with(Way::Scan)),
            ReachChoice::Only(_) => None,
        }
    }

    fn seed_with(&self, way: Way) -> Seed {
        let scans = Arc::clone(&self.scans);
        Seed { way: Some(way), controllers: vec![], birth: Birth::next(), scans }
    }

    /// The tree of a leader that an earlier engine started and saw exit, by its cgroup if that still
    /// exists.
    pub(crate) fn regrow(&self, leader: i32, id: Id, cgroup: Option<Cgroup>) -> Tree {
        let way = self.way_back(cgroup);
        Tree { marks: Marks::new(leader, id, None, None), way, scans: Arc::clone(&self.scans) }
    }

    /// As [`Trees::regrow`], of a leader that nobody saw exit.
    pub(crate) fn regrow_lost(&self, leader: i32, id: Id, cgroup: Option<Cgroup>) -> Tree {
        let leader_start = lost_leader_start(leader, id, cgroup.as_ref());
        let way = self.way_back(cgroup);
        let marks = Marks::new(leader, id, None, leader_start);
        Tree { marks, way, scans: Arc::clone(&self.scans) }
    }

    /// The tree of a leader that is taken over and not reaped yet, with the marks it was born with.
    pub(crate) fn take_over(
        &self,
        leader: i32,
        id: Id,
        cgroup: Option<Cgroup>,
        birth: (Option<Tag>, u64),
    ) -> Tree {
        let way = self.way_back(cgroup);
        let leader_start = leader_start(&way, leader);
        let marks = Marks::new(leader, id, Some(Birth::again(birth)), leader_start);
        Tree { marks, way, scans: Arc::clone(&self.scans) }
    }

    /// As [`Trees::take_over`], of a leader that may be reaped: its pid may be another's by now.
    pub(crate) fn take_over_ended(
        &self,
        leader: i32,
        id: Id,
        cgroup: Option<Cgroup>,
        birth: (Option<Tag>, u64),
    ) -> Tree {
        let way = self.way_back(cgroup);
        let marks = Marks::new(leader, id, Some(Birth::again(birth)), None);
        Tree { marks, way, scans: Arc::clone(&self.scans) }
    }

    fn way_back(&self, cgroup: Option<Cgroup>) -> Way {
        match (cgroup, &self.pool) {
            (Some(cgroup), Some(pool)) => Way::Cgroup(Arc::new(Lease::from_cgroup(cgroup, pool))),
            (None, _) if self.reach == Reach::Group => Way::Group,
            (Some(_), None) | (None, _) => Way::Scan,
        }
    }

    /// The cgroups, if trees have any.
    pub(crate) fn cgroups(&self) -> Option<&Arc<CgroupPool>> {
        self.pool.as_ref()
    }

    /// From now on, removes every empty cgroup.
    pub(crate) fn close(&self) {
        self.pool.iter().for_each(|pool| pool.close());
    }

    /// Removes the empty cgroups of engines that are gone, except beside one that this engine has
    /// taken over: it may have a thousand of those, which are not empty.
    pub(crate) fn remove_leftovers(&self) {
        self.pool.iter().for_each(|pool| pool.remove_leftovers());
    }
}

impl Seed {
    pub(crate) fn controllers(&self) -> &[Controller] {
        &self.controllers
    }

    pub(crate) fn reach(&self) -> Reach {
        self.way.as_ref().map_or(Reach::Group, Way::reach)
    }

    /// The cgroup to create the leader in.
    pub(crate) fn cgroup(&self) -> Option<CString> {
        self.way.as_ref().and_then(Way::lease).and_then(|lease| lease.path())
    }

    /// The tag that the leader passes on to its children, and since when there can be members.
    pub(crate) fn birth(&self) -> (Option<Tag>, u64) {
        (self.birth.tag, self.birth.since)
    }

    /// The tree of this leader, which exists and is not reaped yet.
    pub(crate) fn grow(mut self, leader: i32, id: Id) -> Tree {
        let way = self.way.take().expect("taken only here, which consumes it");
        let leader_start = leader_start(&way, leader);
        let marks = Marks::new(leader, id, Some(self.birth), leader_start);
        Tree { marks, way, scans: Arc::clone(&self.scans) }
    }
}

/// Of a leader that is not reaped.
fn leader_start(way: &Way, leader: i32) -> Option<u64> {
    match way {
        // Every process in the cgroup belongs to the tree, so the leader's pid is not compared.
        Way::Cgroup(_) => None,
        Way::Scan | Way::Group => procfs::read_stat(leader).ok().map(|stat| stat.start_time),
    }
}

/// Of a leader of an earlier engine, if it still runs. Its pid may be another's by now: it is the
/// leader's only in the tree's cgroup or with the tree's cookie.
fn lost_leader_start(leader: i32, id: Id, cgroup: Option<&Cgroup>) -> Option<u64> {
    let stat = procfs::read_stat(leader).ok().filter(Stat::alive)?;
    let in_cgroup = || cgroup.is_some_and(|it| it.members().is_ok_and(|all| all.contains(&leader)));
    let cookie = || procfs::initial_env(leader, COOKIE).ok().flatten();
    let is_it = in_cgroup() || cookie().is_some_and(|cookie| cookie == id.to_string().as_bytes());
    // Looked at first, verified second.
    (is_it && stat.still_exists()).then_some(stat.start_time)
}

impl Drop for Seed {
    fn drop(&mut self) {
        if let Some(lease) = self.way.as_ref().and_then(Way::lease) {
            // A spawn whose answer was not taken may have left a process here. Or the cgroup accepted
            // no process and may be broken. If it is not empty yet, dropping the lease handles it.
            _ = lease.with_cgroup(|cgroup| cgroup.kill().and_then(|()| cgroup.remove()));
        }
    }
}

fn grow_pool(mechanism: Mechanism) -> io::Result<CgroupPool> {
    let unsupported = |error| io::Error::new(io::ErrorKind::Unsupported, error);
    if mechanism == Mechanism::Clone {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "only clone3 can start a process in its own cgroup",
        ));
    }
    Ok(CgroupPool::new(cgroup::probed_parent().map_err(unsupported)?))
}

fn can_scan() -> bool {
    std::path::Path::new("/proc/self/stat").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pid_that_another_process_has_by_now_is_not_taken_for_a_lost_leader() {
        let own = std::process::id().cast_signed();
        assert_eq!(lost_leader_start(own, Id::fresh(), None), None);
    }
}
