//! Signals to everybody of a tree, to those born meanwhile too.

use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_sys::Signal;
use lastbyte_sys::cgroup::{Leaf, read_state};
use lastbyte_sys::procfs::Member;
use lastbyte_sys::readiness::{self, Interest};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{StopPolicy, StopProof};
use crate::clock::deadline_after;
use crate::tree::{Found, Lease, Reach, Tree};

/// After KILL a process is gone as soon as it leaves the kernel. One that hangs there (a dead
/// network disk) is reported as left rather than waited for.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// Somebody was seen but nobody could be signalled: they have just gone, or, when it happens this
/// often in a row, they are not ours to signal and it is no use to try again.
const MOST_VAIN_LOOKS: usize = 3;

/// One stop of one tree.
pub(super) struct Round {
    tree: Tree,
    signalled: BTreeSet<i32>,
}

/// What the last look saw of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Nobody,
    Somebody,
}

/// What one look through the tree came to.
struct Pass {
    seen: usize,
    /// Those that took the signals.
    reached: Vec<Member>,
}

impl Round {
    pub(super) fn new(tree: Tree) -> Self {
        Self { tree, signalled: BTreeSet::new() }
    }

    /// The stop signal to everybody, with CONT behind it, until nobody is left or the grace is
    /// over.
    pub(super) async fn ask(&mut self, policy: StopPolicy) -> Left {
        // Begins anew when the signal was first sent: a look takes time that is not the command's.
        let mut deadline = deadline_after(policy.grace);
        let mut first = true;
        let (mut empty_looks, mut vain_looks) = (0, 0);
        while Instant::now() < deadline {
            let Some(pass) = self.send([policy.signal, Signal::CONT]).await else {
                pause().await;
                continue;
            };
            if std::mem::take(&mut first) {
                deadline = deadline_after(policy.grace);
            }
            if pass.seen == 0 {
                empty_looks += 1;
                if empty_looks == self.tree.looks_for_proof() {
                    return Left::Nobody;
                }
                continue;
            }
            empty_looks = 0;
            match (pass.reached.is_empty(), self.tree.lease().cloned()) {
                (true, Some(lease)) => return leaf_empties(&lease, deadline).await,
                (true, None) => vain_looks += 1,
                (false, _) => vain_looks = 0,
            }
            if vain_looks == MOST_VAIN_LOOKS || !all_gone(pass.reached, deadline).await {
                break;
            }
        }
        Left::Somebody
    }

    pub(super) async fn kill(&mut self) -> Left {
        let deadline = Instant::now() + KILL_PATIENCE;
        match self.tree.lease().cloned() {
            Some(lease) => self.kill_leaf(&lease, deadline).await,
            None => self.kill_in_rounds(deadline).await,
        }
    }

    /// KILL by the kernel to everybody at once, whom no fork outruns. Those who are in the leaf
    /// before are named.
    async fn kill_leaf(&mut self, lease: &Arc<Lease>, deadline: Instant) -> Left {
        let _watched = lease.watched();
        let killed = blocking(lease, |lease| {
            lease.look(|leaf| {
                // Who cannot be listed is killed all the same, only not named.
                let members = leaf.members().unwrap_or_default();
                leaf.kill()?;
                let events = leaf.events()?;
                Ok((members, events))
            })
        });
        match killed.await {
            Some(Ok(Some((members, events)))) => {
                self.signalled.extend(members);
                until_empty(events, deadline).await
            }
            Some(Ok(None)) => Left::Nobody,
            // It could not be looked at, perhaps for want of descriptors: one by one, then.
            Some(Err(_)) | None => self.kill_in_rounds(deadline).await,
        }
    }

    /// KILL in rounds, until nobody is found. What is found is stopped first, so that it cannot
    /// make more while the rest is looked for.
    async fn kill_in_rounds(&mut self, deadline: Instant) -> Left {
        let (mut empty_looks, mut vain_looks) = (0, 0);
        while Instant::now() < deadline {
            let Some(stopped) = self.send([Signal::STOP]).await else {
                pause().await;
                continue;
            };
            if stopped.seen == 0 {
                empty_looks += 1;
                if empty_looks == self.tree.looks_for_proof() {
                    return Left::Nobody;
                }
                continue;
            }
            empty_looks = 0;
            let Some(pass) = self.send([Signal::KILL]).await else { continue };
            vain_looks = if pass.reached.is_empty() && pass.seen > 0 { vain_looks + 1 } else { 0 };
            if vain_looks == MOST_VAIN_LOOKS {
                break;
            }
            all_gone(pass.reached, deadline).await;
        }
        Left::Somebody
    }

    /// Sends signals to every live member that is reached; `None` when nobody could be looked at,
    /// perhaps for want of descriptors.
    async fn send(&mut self, signals: impl Into<Vec<Signal>>) -> Option<Pass> {
        let signals = signals.into();
        let pass = blocking(&self.tree, move |tree| {
            let Found { seen, mut held } = tree.hold()?;
            held.retain(|member| {
                // Who dies of the first is not there for the second, and was reached.
                let taken: Vec<bool> =
                    signals.iter().map(|signal| member.signal(*signal)).collect();
                taken.contains(&true)
            });
            std::io::Result::Ok(Pass { seen, reached: held })
        });
        let pass = pass.await?.ok()?;
        self.signalled.extend(pass.reached.iter().map(|member| member.pid));
        Some(pass)
    }

    /// What the last look saw is believed, but of a group: those who left it were not looked for.
    pub(super) async fn proof(self, left: Left) -> StopProof {
        let reach = self.tree.reach();
        let left: Vec<i32> = match (left, reach) {
            (Left::Nobody, Reach::Leaf | Reach::Scan) => Vec::new(),
            (Left::Somebody, _) | (Left::Nobody, Reach::Group) => {
                match blocking(&self.tree, Tree::members).await {
                    Some(Ok(members)) => members.into_iter().map(|stat| stat.pid).collect(),
                    // Nobody could be looked at, so nobody is known to be gone.
                    Some(Err(_)) | None => {
                        let leader = [self.tree.leader()].into_iter();
                        leader
                            .chain(self.signalled.iter().copied())
                            .collect::<BTreeSet<_>>()
                            .into_iter()
                            .collect()
                    }
                }
            }
        };
        let gone = self.signalled.iter().copied().filter(|pid| !left.contains(pid)).collect();
        StopProof { signalled: self.signalled.into_iter().collect(), gone, left, reach }
    }
}

/// Looks off the runtime; `None` when the look panicked.
async fn blocking<T: Clone + Send + 'static, R: Send + 'static>(
    what: &T,
    look: impl FnOnce(&T) -> R + Send + 'static,
) -> Option<R> {
    let what = what.clone();
    spawn_blocking(move || look(&what)).await.ok()
}

/// Somebody is in the leaf and nobody could be signalled: they are about to be gone, which the leaf
/// tells, or they are not ours to signal, and then they have their grace all the same.
async fn leaf_empties(lease: &Arc<Lease>, deadline: Instant) -> Left {
    let _watched = lease.watched();
    match blocking(lease, |lease| lease.look(Leaf::events)).await {
        Some(Ok(Some(events))) => until_empty(events, deadline).await,
        Some(Ok(None)) => Left::Nobody,
        Some(Err(_)) | None => Left::Somebody,
    }
}

/// Waits until nobody lives in the leaf, or the time is over.
async fn until_empty(events: OwnedFd, deadline: Instant) -> Left {
    let emptied = async {
        let events = readiness::watch(events, Interest::PRIORITY)?;
        // Read before each wait, which then lasts until the next change.
        while read_state(&events)?.populated {
            events.ready(Interest::PRIORITY).await?.clear_ready();
        }
        std::io::Result::Ok(Left::Nobody)
    };
    // What could not be watched is looked at by the proof.
    timeout_at(deadline, emptied).await.ok().and_then(Result::ok).unwrap_or(Left::Somebody)
}

/// Waits until all of these have exited, or the time is over (`false`).
async fn all_gone(members: Vec<Member>, deadline: Instant) -> bool {
    let mut waits = JoinSet::new();
    for member in members {
        waits.spawn(async move {
            match readiness::watch(member, Interest::READABLE) {
                Ok(member) => _ = member.readable().await,
                // It cannot be watched; the next look tells what became of it.
                Err(_) => pause().await,
            }
        });
    }
    timeout_at(deadline, async { while waits.join_next().await.is_some() {} }).await.is_ok()
}

/// What is short now may be there in a moment.
async fn pause() {
    sleep_until(Instant::now() + Duration::from_millis(10)).await;
}
