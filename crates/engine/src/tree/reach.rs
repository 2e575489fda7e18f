//! The ways to reach a tree, and the one that an engine uses.

use std::ffi::CString;
use std::io;
use std::sync::Arc;

use lastbyte_sys::cgroup::{self, Leaf};
use lastbyte_sys::spawn::Mechanism;

use super::lease::Lease;
use super::leaves::Leaves;
use super::members::{Tree, Way};
use crate::Id;

/// How the members of a tree are found and ended, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// By a cgroup of its own, which no fork outruns; who has the right to leave it is looked for
    /// by the cookie.
    Leaf,
    /// By looking through all processes, again and again: parent, session, group and cookie.
    Scan,
    /// The leader's group alone; who left it is named, not reached.
    Group,
}

/// Which of them an engine uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReachChoice {
    #[default]
    Best,
    /// This one; an engine that cannot have it is not made.
    Only(Reach),
}

/// What an engine knows of reaching its trees.
#[derive(Debug)]
pub(crate) struct Trees {
    choice: ReachChoice,
    /// `Some` where the reach is by leaf.
    leaves: Option<Arc<Leaves>>,
    reach: Reach,
}

/// Where a tree will grow. Dropped before it has a leader, it ends whoever is there.
#[derive(Debug)]
pub(crate) struct Plot {
    way: Option<Way>,
}

impl Trees {
    /// Finds out what this machine offers, and removes what dead runs of ours have left.
    pub(crate) fn new(choice: ReachChoice, mechanism: Mechanism) -> io::Result<Self> {
        let leaves = match choice {
            ReachChoice::Best => grow_leaves(mechanism).ok(),
            ReachChoice::Only(Reach::Leaf) => Some(grow_leaves(mechanism)?),
            ReachChoice::Only(Reach::Scan | Reach::Group) => None,
        };
        let reach = match (choice, &leaves) {
            (ReachChoice::Only(reach), _) => reach,
            (ReachChoice::Best, Some(_)) => Reach::Leaf,
            (ReachChoice::Best, None) if can_scan() => Reach::Scan,
            (ReachChoice::Best, None) => Reach::Group,
        };
        Ok(Self { choice, leaves: leaves.map(Arc::new), reach })
    }

    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    /// A place for one more tree.
    pub(crate) fn plot(&self) -> io::Result<Plot> {
        let way = match (&self.leaves, self.reach) {
            (Some(leaves), _) => Way::Leaf(Arc::new(Lease::new(leaves)?)),
            (None, Reach::Group) => Way::Group,
            (None, Reach::Leaf | Reach::Scan) => Way::Scan,
        };
        Ok(Plot { way: Some(way) })
    }

    /// A place for a tree that cannot have a leaf; `None` where it must.
    pub(crate) fn plot_without_leaf(&self) -> Option<Plot> {
        match self.choice {
            ReachChoice::Best => Some(Plot { way: Some(Way::Scan) }),
            ReachChoice::Only(_) => None,
        }
    }

    /// The tree of a leader that an earlier engine has started, by its leaf if that is still there.
    pub(crate) fn regrow(&self, leader: i32, id: Id, leaf: Option<Leaf>) -> Tree {
        let way = match (leaf, &self.leaves) {
            (Some(leaf), Some(leaves)) => Way::Leaf(Arc::new(Lease::of(leaf, leaves))),
            (Some(_), None) | (None, _) => Way::Scan,
        };
        Tree::of_another(leader, id, way)
    }

    /// Takes back the leaves of forgotten trees that have become empty.
    pub(crate) fn reclaim(&self) {
        self.leaves.iter().for_each(|leaves| leaves.reclaim());
    }

    /// From now on what is empty is removed.
    pub(crate) fn close(&self) {
        self.leaves.iter().for_each(|leaves| leaves.close());
    }
}

impl Plot {
    /// The leaf that the leader is to be born in.
    pub(crate) fn leaf(&self) -> Option<CString> {
        self.way.as_ref().and_then(Way::lease).and_then(|lease| lease.path())
    }

    /// The tree of this leader, which is there and not reaped yet.
    pub(crate) fn grow(mut self, leader: i32, id: Id) -> Tree {
        let way = self.way.take().expect("taken only here, which consumes it");
        Tree::new(leader, id, way)
    }
}

impl Drop for Plot {
    fn drop(&mut self) {
        if let Some(lease) = self.way.as_ref().and_then(Way::lease) {
            // A spawn whose answer nobody took may have left somebody, and a leaf that took nobody
            // may be at fault. One that is not empty yet is seen to by the lease's own end.
            _ = lease.look(|leaf| leaf.kill().and_then(|()| leaf.remove()));
        }
    }
}

fn grow_leaves(mechanism: Mechanism) -> io::Result<Leaves> {
    let unsupported = |error| io::Error::new(io::ErrorKind::Unsupported, error);
    if mechanism == Mechanism::Clone {
        return Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "only clone3 can start a process in a cgroup of its own",
        ));
    }
    let folder = cgroup::probe().map_err(unsupported)?;
    cgroup::sweep(&folder)?;
    Leaves::new(&folder)
}

fn can_scan() -> bool {
    std::path::Path::new("/proc/self/stat").exists()
}
