//! Stops a tree reliably: the stop signal, a grace period, KILL, and a check of what is left.

mod round;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::notes::Notes;
use crate::tree::{Appeared, Reach, Target, Tree, TreeView};
use lastbyte_sys::Signal;
use lastbyte_sys::procfs::Stat;
use round::{Left, Round};

/// How a command is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopPolicy {
    /// Sent first, to the whole tree, followed by CONT so that stopped processes see it.
    pub signal: Signal,
    /// How long to wait before KILL; zero means KILL at once.
    pub grace: Duration,
}

/// Which operation a stop came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Stop,
    /// The engine, or the connection that started the command, was closed.
    Close,
    /// No client was connected to it any more.
    Disconnect,
}

/// The outcome of stopping a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopProof {
    /// Every process that was sent a signal.
    pub signalled: Vec<i32>,
    /// Those of them that are gone. A zombie is gone.
    pub gone: Vec<i32>,
    /// The processes that are still alive, or could not be shown to be gone.
    pub left: Vec<i32>,
    /// Those of `left` that may belong to another tree as well. It is unknown whose they are, so
    /// they were not signalled.
    pub unattributed: Vec<i32>,
    /// The names of the processes above, read while they lived; those that could be read.
    pub names: BTreeMap<i32, String>,
    /// How the tree was reached.
    pub reach: Reach,
    /// Whether the kernel confirms that nothing is left, and every descendant of this program is
    /// accounted for. Otherwise a search found nothing, which is weaker.
    pub proved: bool,
}

/// Pids, each with the name of its process; empty if it is unknown.
type Names = BTreeMap<i32, String>;

/// Whether KILL was needed. Shared with the owner, which reports it in the ending.
#[derive(Debug, Clone, Default)]
pub(crate) struct Escalation {
    happened: Arc<AtomicBool>,
    notes: Notes,
}

impl Default for StopPolicy {
    fn default() -> Self {
        Self { signal: Signal::TERM, grace: Duration::from_secs(5) }
    }
}

impl StopPolicy {
    /// KILL at once.
    pub const KILL: Self = Self { signal: Signal::KILL, grace: Duration::ZERO };
}

impl Escalation {
    /// As it was noted, and noted from now on.
    pub(crate) fn noted(notes: &Notes) -> Self {
        Self { happened: Arc::new(notes.escalated().into()), notes: notes.clone() }
    }

    pub(crate) fn happens(&self) {
        self.notes.note_escalation();
        self.happened.store(true, Ordering::Release);
    }

    pub(crate) fn happened(&self) -> bool {
        self.happened.load(Ordering::Acquire)
    }
}

impl StopProof {
    /// Nothing is known to be gone, not even the leader.
    pub(crate) fn unproved(tree: &Tree) -> Self {
        Self::new(Names::new(), Names::from([(tree.leader(), String::new())]), tree.reach())
    }

    fn new(signalled: Names, left: Names, reach: Reach) -> Self {
        let gone = signalled.keys().filter(|pid| !left.contains_key(pid)).copied().collect();
        let pids = |names: &Names| names.keys().copied().collect();
        Self {
            signalled: pids(&signalled),
            gone,
            left: pids(&left),
            unattributed: vec![],
            names: left.into_iter().chain(signalled).filter(|(_, name)| !name.is_empty()).collect(),
            reach,
            proved: false,
        }
    }

    pub(crate) fn leave_out_unattributed(&mut self) {
        let unattributed = std::mem::take(&mut self.unattributed);
        self.left.retain(|pid| !unattributed.contains(pid));
        self.names.retain(|pid, _| !unattributed.contains(pid));
    }

    fn named(&self, pids: &[i32]) -> Names {
        let named = |pid| (pid, self.names.get(&pid).cloned().unwrap_or_default());
        pids.iter().copied().map(named).collect()
    }

    /// Merges two stops of one tree with what a scan has found after both.
    fn with(self, more: Option<Self>, after: ScanAfter) -> Self {
        let both = [Some(&self), more.as_ref()].into_iter().flatten();
        let signalled = both.clone().flat_map(|proof| proof.named(&proof.signalled)).collect();
        let mut left: Names = both.flat_map(|proof| proof.named(&proof.left)).collect();
        let ScanAfter { members, unattributed, complete } = after;
        let pids = unattributed.keys().copied().collect();
        left.extend(members.into_iter().chain(unattributed));
        let (unattributed, proved) =
            (pids, left.is_empty() && self.reach == Reach::Cgroup && complete);
        Self { unattributed, proved, ..Self::new(signalled, left, self.reach) }
    }
}

/// What a scan of all processes has found alive after a stop.
#[derive(Debug, Default)]
struct ScanAfter {
    members: Names,
    unattributed: Names,
    /// The scan cannot have missed a process that may be left.
    complete: bool,
}

/// Stops the whole tree and reports the outcome.
pub(crate) async fn stop(tree: Tree, policy: StopPolicy, escalation: Escalation) -> StopProof {
    let proof = stop_target(Target::Tree(tree.clone()), policy, &escalation).await;
    let mut after = scan_after(&tree).await;
    let mut more = None;
    // A process with the right to do so can leave a cgroup; the scan has found it.
    if tree.reach() == Reach::Cgroup && !after.members.is_empty() {
        let escapees = Target::Tree(tree.by_scan());
        more = Some(stop_target(escapees, policy, &escalation).await);
        after = scan_after(&tree).await;
    }
    let proof = proof.with(more, after);
    if proof.left.is_empty() {
        tree.give_back_if_empty();
    }
    proof
}

/// Stops the descendants of this program that belong to no process that can be stopped.
pub(crate) async fn stop_unowned(policy: StopPolicy) -> StopProof {
    stop_target(Target::Unowned, policy, &Escalation::default()).await
}

/// Scans all processes. Names only one link of a fork chain that is too short-lived for a scan.
async fn scan_after(tree: &Tree) -> ScanAfter {
    let Some(TreeView { members, unattributed, appeared }) = tree.scan().await else {
        return ScanAfter::default();
    };
    let (mut members, mut unattributed) = (names(members), names(unattributed));
    let appeared = appeared.filter(|_| tree.is_below_us());
    let complete = appeared.is_some();
    let Appeared { member, unowned } = appeared.unwrap_or_default();
    // A process that has left a cgroup. Without a cgroup, the stop itself has followed them.
    members.extend(member.filter(|_| tree.reach() == Reach::Cgroup));
    unattributed.extend(unowned);
    ScanAfter { members, unattributed, complete }
}

fn names(stats: Vec<Stat>) -> Names {
    stats.into_iter().map(|stat| (stat.pid, stat.name)).collect()
}

async fn stop_target(target: Target, policy: StopPolicy, escalation: &Escalation) -> StopProof {
    let mut round = Round::new(target);
    let ask_first = policy.signal != Signal::KILL && !policy.grace.is_zero();
    let mut left = if ask_first { round.ask(policy).await } else { Left::Somebody };
    if left == Left::Somebody {
        if ask_first {
            escalation.happens();
        }
        left = round.kill().await;
    }
    round.proof(left).await
}
