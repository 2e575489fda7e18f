//! A tree: what identifies it, before and after its leader is gone, and who lives in it.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use lastbyte_sys::Signal;
use lastbyte_sys::cgroup::Leaf;
use lastbyte_sys::procfs::{self, Member, Stat};

use super::lease::Lease;
use super::reach::Reach;
use super::scan::Marks;
use crate::Id;
use crate::ending::{Holder, Holders};

/// A live process of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    pub pid: i32,
    pub name: String,
}

#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(super) marks: Marks,
    pub(super) way: Way,
}

/// How this one tree is reached, with what that takes.
#[derive(Debug, Clone)]
pub(super) enum Way {
    Leaf(Arc<Lease>),
    Scan,
    Group,
}

/// Those that a signal can be sent to.
#[derive(Debug)]
pub(crate) struct Found {
    /// How many were seen; some may have gone before they could be held.
    pub(crate) seen: usize,
    pub(crate) held: Vec<Member>,
}

/// How many holders are named.
const MOST_HOLDERS: usize = 64;

impl Tree {
    /// Of a leader that is not reaped yet.
    pub(super) fn new(leader: i32, id: Id, way: Way) -> Self {
        let marks = match &way {
            // Whoever is in the leaf is of the tree: nothing has to be compared.
            Way::Leaf(_) => Marks::unlooked(leader, id),
            Way::Scan | Way::Group => Marks::of(leader, id),
        };
        Self { marks, way }
    }

    /// Of a leader that was never ours to reap: its number may be another's by now.
    pub(super) fn of_another(leader: i32, id: Id, way: Way) -> Self {
        Self { marks: Marks::unlooked(leader, id), way }
    }

    pub(crate) fn leader(&self) -> i32 {
        self.marks.leader
    }

    pub(crate) fn reach(&self) -> Reach {
        match &self.way {
            Way::Leaf(_) => Reach::Leaf,
            Way::Scan => Reach::Scan,
            Way::Group => Reach::Group,
        }
    }

    /// The same tree as a scan finds it, if it has a leaf and anybody lives outside of that. Asked
    /// when the leaf is empty.
    pub(crate) async fn strays(&self) -> Option<Self> {
        let strays = self.lease()?.strays();
        let scanned = Self { marks: self.marks.clone(), way: Way::Scan };
        strays.any(scanned.clone()).await.then_some(scanned)
    }

    /// Its leaf, where it has one.
    pub(crate) fn lease(&self) -> Option<&Arc<Lease>> {
        self.way.lease()
    }

    /// Every live member, the leader included.
    pub(crate) fn members(&self) -> io::Result<Vec<Stat>> {
        match &self.way {
            Way::Leaf(lease) => Ok(lease.look(stats_in)?.unwrap_or_default()),
            Way::Scan | Way::Group => self.marks.scan(),
        }
    }

    /// Takes hold of every live member that a stop reaches.
    pub(crate) fn hold(&self) -> io::Result<Found> {
        match &self.way {
            Way::Leaf(lease) => Ok(lease.look(hold_in)?.unwrap_or(Found::NOBODY)),
            Way::Scan => Ok(Found::of(&self.marks.scan()?)),
            Way::Group => {
                let mut members = self.marks.scan()?;
                members.retain(|stat| self.in_group(stat));
                Ok(Found::of(&members))
            }
        }
    }

    /// How many looks in a row must find nobody before nobody is there. A scan can pass a process
    /// that is just being born behind it; a leaf is counted by the kernel.
    pub(crate) fn looks_for_proof(&self) -> usize {
        match &self.way {
            Way::Leaf(_) => 1,
            Way::Scan | Way::Group => 2,
        }
    }

    /// Sends a signal to the live members of the leader's group; returns how many got it.
    pub(crate) fn signal_group(&self, signal: Signal) -> usize {
        // Who could not be looked at was not signalled, and that is what is told.
        let members = self.members().unwrap_or_default();
        let in_group = members.iter().filter(|stat| self.in_group(stat));
        in_group.filter_map(Member::hold).filter(|member| member.signal(signal)).count()
    }

    /// The live members that have one of these files open, as far as there is time to look.
    pub(crate) fn holders(&self, files: &[PathBuf], deadline: Instant) -> Holders {
        let mut holders = Vec::new();
        let members = self.members().unwrap_or_default();
        self.marks.remember(&members);
        for stat in members {
            if Instant::now() >= deadline || holders.len() == MOST_HOLDERS {
                break;
            }
            if procfs::holds_any(stat.pid, files) {
                holders.push(Holder { pid: stat.pid, name: stat.name });
            }
        }
        match holders.is_empty() {
            true => Holders::Unknown,
            false => Holders::Known(holders),
        }
    }

    /// The live members, by name.
    pub(crate) fn survivors(&self) -> Vec<Survivor> {
        let survivor = |stat: Stat| Survivor { pid: stat.pid, name: stat.name };
        self.members().unwrap_or_default().into_iter().map(survivor).collect()
    }

    /// The most memory that the tree has used, where its leaf counts that.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        let lease = self.lease()?;
        lease.look(|leaf| Ok(leaf.peak_memory())).ok().flatten().flatten()
    }

    /// Lets go of what an empty tree does not need. Asked whenever it may have become empty: when
    /// its owner is done, when a stop proved it, at each sweep and when it is forgotten.
    pub(crate) fn give_back_if_empty(&self) {
        self.lease().into_iter().for_each(|lease| lease.give_back_if_empty());
    }

    fn in_group(&self, stat: &Stat) -> bool {
        stat.group == self.marks.leader
    }
}

impl Way {
    pub(super) fn lease(&self) -> Option<&Arc<Lease>> {
        match self {
            Self::Leaf(lease) => Some(lease),
            Self::Scan | Self::Group => None,
        }
    }
}

impl Found {
    const NOBODY: Self = Self { seen: 0, held: Vec::new() };

    fn of(members: &[Stat]) -> Self {
        Self { seen: members.len(), held: members.iter().filter_map(Member::hold).collect() }
    }
}

/// Those in a leaf, described. A description of a number that changed hands meanwhile is left out.
fn stats_in(leaf: &Leaf) -> io::Result<Vec<Stat>> {
    let described = |pid: i32| procfs::read_stat(pid).ok();
    let mut stats: Vec<Stat> = leaf.members()?.into_iter().filter_map(described).collect();
    let still: HashSet<i32> = leaf.members()?.into_iter().collect();
    stats.retain(|stat| stat.alive() && still.contains(&stat.pid));
    Ok(stats)
}

fn hold_in(leaf: &Leaf) -> io::Result<Found> {
    if !leaf.state()?.populated {
        return Ok(Found::NOBODY);
    }
    let pids = leaf.members()?;
    let mut held: Vec<Member> = pids.iter().copied().filter_map(Member::open).collect();
    // Opened first, looked at second: a number that is still in the leaf is of a member, and so is
    // the descriptor, or it is of one that is gone.
    let still: HashSet<i32> = leaf.members()?.into_iter().collect();
    held.retain(|member| still.contains(&member.pid));
    Ok(Found { seen: pids.len().max(1), held })
}
