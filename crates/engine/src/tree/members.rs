//! A tree: what identifies it, before and after its leader is gone, and its members.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lastbyte_sys::cgroup::Cgroup;
use lastbyte_sys::procfs::{self, Member, Stat};
use lastbyte_sys::{Signal, orphans};

use tokio::task::spawn_blocking;

use super::census::{Census, TreeView};
use super::fork_chain::ForkChain;
use super::lease::Lease;
use super::marks::Marks;
use super::reach::Reach;
use super::scans::Scans;
use crate::process::ending::{Holder, Holders};

/// A live process of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survivor {
    pub pid: i32,
    pub name: String,
    /// It is unknown whether it belongs to this tree or to another.
    pub unattributed: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Tree {
    pub(super) marks: Arc<Marks>,
    pub(super) way: Way,
    pub(super) scans: Arc<Scans>,
}

/// What to stop.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    Tree(Tree),
    /// The descendants of this program that belong to no tree that can be stopped.
    Unowned,
}

/// How this tree is reached, with the resources for it.
#[derive(Debug, Clone)]
pub(super) enum Way {
    Cgroup(Arc<Lease>),
    Scan,
    Group,
}

/// The processes that can be signalled, or have been.
#[derive(Debug, Default)]
pub(crate) struct Members {
    /// How many were seen. Some may have exited before they could be opened.
    pub(crate) seen: usize,
    pub(crate) held: Vec<Member>,
}

/// A scan can miss a process that is forked behind it.
pub(super) const SCANS_FOR_PROOF: usize = 2;

/// How many holders an ending names.
const MOST_HOLDERS: usize = 64;

impl Tree {
    pub(crate) fn leader(&self) -> i32 {
        self.marks.leader
    }

    /// Whether the leader is alive, as far as its start time is known.
    pub(crate) fn leader_runs(&self) -> bool {
        self.marks.leader_runs()
    }

    pub(crate) fn reach(&self) -> Reach {
        self.way.reach()
    }

    /// The same tree as found by a scan: once its cgroup is empty, these are the processes that left
    /// it.
    pub(crate) fn by_scan(&self) -> Self {
        Self { way: Way::Scan, ..self.clone() }
    }

    /// The result of a scan shared with other stops; `None` if it failed.
    pub(crate) async fn scan(&self) -> Option<TreeView> {
        self.scans.scan(Arc::clone(&self.marks)).await
    }

    /// Whether every member is a descendant of this program, even if it lost its parent.
    pub(crate) fn is_below_us(&self) -> bool {
        orphans::adopts() && self.marks.since.is_some()
    }

    fn view(&self) -> io::Result<TreeView> {
        Ok(Census::take(std::slice::from_ref(&self.marks))?.view(&self.marks))
    }

    /// Its cgroup, if it has one.
    pub(crate) fn lease(&self) -> Option<&Arc<Lease>> {
        self.way.lease()
    }

    /// Every live member, including the leader.
    pub(crate) fn members(&self) -> io::Result<Vec<Stat>> {
        match &self.way {
            Way::Cgroup(lease) => Ok(lease.with_cgroup(stats_in)?.unwrap_or_default()),
            Way::Scan | Way::Group => Ok(self.view()?.members),
        }
    }

    /// Signals the live members of the leader's group; returns how many received it.
    pub(crate) fn signal_group(&self, signal: Signal) -> usize {
        // A process that could not be read was not signalled, so it is not counted.
        let members = self.members().unwrap_or_default();
        let in_group = members.iter().filter(|stat| self.in_group(stat));
        in_group.filter_map(Member::hold).filter(|member| member.signal(signal)).count()
    }

    /// The live members that have one of these files open, as far as time permits.
    pub(crate) fn holders(&self, files: &[PathBuf], deadline: Instant) -> Holders {
        let members = self.members().unwrap_or_default();
        self.marks.remember(&members);
        let in_time = members.into_iter().take_while(|_| Instant::now() < deadline);
        let holding = in_time.filter(|stat| procfs::holds_any(stat.pid, files)).take(MOST_HOLDERS);
        let holders: Vec<_> = holding.map(|Stat { pid, name, .. }| Holder { pid, name }).collect();
        if holders.is_empty() { Holders::Unknown } else { Holders::Known(holders) }
    }

    /// The live members by name, inside and outside the cgroup, and the processes that may be
    /// members.
    pub(crate) fn survivors(&self) -> Vec<Survivor> {
        let TreeView { members, unattributed, appeared: _ } = self.view().unwrap_or_default();
        let in_cgroup = self.lease().and_then(|lease| lease.with_cgroup(stats_in).ok()?);
        let survivor = |unattributed| {
            move |Stat { pid, name, .. }: Stat| (pid, Survivor { pid, name, unattributed })
        };
        let members = members.into_iter().chain(in_cgroup.unwrap_or_default()).map(survivor(false));
        let all: BTreeMap<i32, Survivor> =
            unattributed.into_iter().map(survivor(true)).chain(members).collect();
        all.into_values().collect()
    }

    /// The peak memory of the tree, if its cgroup accounts it.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        self.in_cgroup(Cgroup::peak_memory)
    }

    /// Whether the kernel killed a member because memory ran out, as far as its cgroup tells.
    pub(crate) fn oom_killed(&self) -> bool {
        self.in_cgroup(Cgroup::oom_kills).is_some_and(|kills| kills.killed > 0)
    }

    /// As [`Tree::oom_killed`], because the tree had passed its own limit.
    pub(crate) fn oom_killed_at_limit(&self) -> bool {
        let kills = self.in_cgroup(Cgroup::oom_kills);
        kills.is_some_and(|kills| kills.killed > 0 && kills.at_own_limit > 0)
    }

    /// Whether the kernel refused to start a process of the tree, because of its limit.
    pub(crate) fn forks_refused(&self) -> bool {
        let is_limited = |cgroup: &Cgroup| cgroup.is_limited().then(|| cgroup.refused_forks());
        self.in_cgroup(|cgroup| is_limited(cgroup).flatten()).is_some_and(|times| times > 0)
    }

    /// The processor time of the tree, if its cgroup tells.
    pub(crate) fn cpu_time(&self) -> Option<(Duration, Duration)> {
        self.in_cgroup(Cgroup::cpu_time)
    }

    fn in_cgroup<T>(&self, look: impl FnOnce(&Cgroup) -> Option<T>) -> Option<T> {
        self.lease()?.with_cgroup(|cgroup| Ok(look(cgroup))).ok().flatten().flatten()
    }

    /// Releases what an empty tree does not need. Called whenever it may have become empty: when
    /// its owner is done, when a stop has proved it, at each sweep and when it is forgotten.
    pub(crate) fn give_back_if_empty(&self) {
        self.lease().into_iter().for_each(|lease| lease.give_back_if_empty());
    }

    fn in_group(&self, stat: &Stat) -> bool {
        stat.group == self.marks.leader
    }
}

impl Target {
    fn tree(&self) -> Option<&Tree> {
        match self {
            Self::Tree(tree) => Some(tree),
            Self::Unowned => None,
        }
    }

    pub(crate) fn lease(&self) -> Option<&Arc<Lease>> {
        self.tree()?.lease()
    }

    pub(crate) fn reach(&self) -> Reach {
        self.tree().map_or(Reach::Scan, Tree::reach)
    }

    pub(crate) fn leader(&self) -> Option<i32> {
        self.tree().map(Tree::leader)
    }

    /// How many consecutive scans must find nothing before the target counts as empty. The kernel
    /// counts the members of a cgroup.
    pub(crate) fn scans_for_proof(&self) -> usize {
        if self.lease().is_some() { 1 } else { SCANS_FOR_PROOF }
    }

    /// Watches for orphans that are too short-lived for a scan, if there is no cgroup.
    pub(crate) fn fork_chain(&self) -> Option<ForkChain> {
        match self {
            Self::Tree(Tree { way: Way::Scan, marks, .. }) => {
                ForkChain::new(Some(Arc::clone(marks)))
            }
            Self::Tree(_) => None,
            Self::Unowned => ForkChain::new(None),
        }
    }

    /// The processor time of the tree, if its cgroup tells.
    pub(crate) fn cpu_time(&self) -> Option<Duration> {
        self.tree()?.cpu_time().map(|(user, system)| user + system)
    }

    /// Every live process of the target. Blocks.
    pub(crate) fn members(&self) -> io::Result<Vec<Stat>> {
        match self {
            Self::Tree(tree) => tree.members(),
            Self::Unowned => Ok(Census::take(&[])?.into_unowned()),
        }
    }

    /// The live processes that a stop reaches, if they are found by a scan that it shares with
    /// others. `None` if the scan failed.
    pub(crate) async fn scan(&self) -> Option<Vec<Stat>> {
        let Self::Tree(tree @ Tree { way: Way::Scan | Way::Group, .. }) = self else {
            return Some(vec![]);
        };
        let mut members = tree.scan().await?.members;
        members.retain(|stat| tree.reach() == Reach::Scan || tree.in_group(stat));
        Some(members)
    }

    /// Opens every live process that a stop reaches. Blocks.
    pub(crate) fn hold(&self, scanned: &[Stat]) -> io::Result<Members> {
        match self {
            Self::Tree(Tree { way: Way::Scan | Way::Group, .. }) => Ok(Members::open(scanned)),
            Self::Tree(Tree { way: Way::Cgroup(lease), .. }) => {
                Ok(lease.with_cgroup(hold_in)?.unwrap_or_default())
            }
            Self::Unowned => Ok(Members::open(&self.members()?)),
        }
    }

    /// Whether it has a cgroup and the kernel counts nobody in it.
    pub(crate) fn has_empty_cgroup(&self) -> bool {
        let state = self.lease().map(|lease| lease.with_cgroup(Cgroup::state));
        // A cgroup that was given back was empty. One that cannot be read may not be.
        state.is_some_and(|state| state.is_ok_and(|state| state.is_none_or(|it| !it.populated)))
    }

    /// Runs a function on a blocking thread; `None` if it panicked.
    pub(crate) async fn blocking<R: Send + 'static>(
        &self,
        call: impl FnOnce(&Self) -> R + Send + 'static,
    ) -> Option<R> {
        let target = self.clone();
        match self {
            Self::Tree(tree) => tree.scans.queue.run(move || call(&target)).await,
            Self::Unowned => spawn_blocking(move || call(&target)).await.ok(),
        }
    }
}

impl Way {
    pub(super) fn reach(&self) -> Reach {
        match self {
            Self::Cgroup(_) => Reach::Cgroup,
            Self::Scan => Reach::Scan,
            Self::Group => Reach::Group,
        }
    }

    pub(super) fn lease(&self) -> Option<&Arc<Lease>> {
        match self {
            Self::Cgroup(lease) => Some(lease),
            Self::Scan | Self::Group => None,
        }
    }
}

impl Members {
    pub(super) fn open(members: &[Stat]) -> Self {
        Self { seen: members.len(), held: members.iter().filter_map(Member::hold).collect() }
    }
}

/// The stats of the processes in a cgroup. Leaves out a pid that was reused meanwhile.
pub(crate) fn stats_in(cgroup: &Cgroup) -> io::Result<Vec<Stat>> {
    let described = |pid: i32| procfs::read_stat(pid).ok();
    let mut stats: Vec<Stat> = cgroup.members()?.into_iter().filter_map(described).collect();
    let still: HashSet<i32> = cgroup.members()?.into_iter().collect();
    stats.retain(|stat| stat.alive() && still.contains(&stat.pid));
    Ok(stats)
}

fn hold_in(cgroup: &Cgroup) -> io::Result<Members> {
    let pids = cgroup.members()?;
    if pids.is_empty() {
        // Processes that we cannot see may live in it.
        return Ok(Members { seen: cgroup.state()?.populated.into(), held: vec![] });
    }
    let open = |pid| Some(Member::open(pid)?.named(&procfs::read_name(pid)));
    let mut held: Vec<Member> = pids.iter().copied().filter_map(open).collect();
    // Opened first, verified second: a pid that is still in the cgroup belongs to a member, and so
    // does the descriptor, unless its process is gone.
    let still: HashSet<i32> = cgroup.members()?.into_iter().collect();
    held.retain(|member| still.contains(&member.pid));
    Ok(Members { seen: pids.len().max(1), held })
}
