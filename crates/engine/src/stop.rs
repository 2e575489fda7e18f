//! Stopping a tree for sure: the stop signal, a grace, KILL, and a look at what is left.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lastbyte_sys::Signal;
use lastbyte_sys::procfs::Member;
use lastbyte_sys::readiness::{self, Interest};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use crate::tree::Tree;

/// How a command is asked to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StopPolicy {
    /// Sent first, to the whole tree, with CONT behind it so that stopped ones see it.
    pub signal: Signal,
    /// How long it has before KILL; zero means KILL at once.
    pub grace: Duration,
}

/// Which operation a stop came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Stop,
    /// The engine, or the connection that started it, was closed.
    Close,
}

/// What became of a tree that was stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StopProof {
    /// Every process that was sent a signal.
    pub signalled: Vec<i32>,
    /// Those of them that are gone. A zombie is gone.
    pub gone: Vec<i32>,
    /// What still lives.
    pub left: Vec<i32>,
}

/// Whether KILL was needed; shared with the owner, which tells it in the ending.
#[derive(Debug, Clone, Default)]
pub(crate) struct Escalation(Arc<AtomicBool>);

/// After KILL a process is gone as soon as it leaves the kernel. One that hangs there (a dead
/// network disk) is reported as left rather than waited for.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

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
    pub(crate) fn happened(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Stops everything of the tree and says what became of it.
pub(crate) async fn stop(tree: Tree, policy: StopPolicy, escalation: Escalation) -> StopProof {
    let mut round = Round { tree, signalled: BTreeSet::new() };
    let ask_first = policy.signal != Signal::KILL && !policy.grace.is_zero();
    let mut left = match ask_first {
        true => round.ask(policy).await,
        false => Left::Somebody,
    };
    if left == Left::Somebody {
        if ask_first {
            escalation.0.store(true, Ordering::Release);
        }
        left = round.kill().await;
    }
    round.proof(left).await
}

struct Round {
    tree: Tree,
    signalled: BTreeSet<i32>,
}

/// What the last pass saw of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    Nobody,
    Somebody,
}

/// Those found in one pass.
struct Pass {
    found: usize,
    /// Those that took the signal.
    reached: Vec<Member>,
}

impl Round {
    /// The stop signal to everybody, to those born meanwhile too, until nobody is left or the
    /// grace is over.
    async fn ask(&mut self, policy: StopPolicy) -> Left {
        let deadline = Instant::now() + policy.grace;
        while Instant::now() < deadline {
            let pass = self.send([policy.signal, Signal::CONT]).await;
            if pass.found == 0 {
                return Left::Nobody;
            }
            if pass.reached.is_empty() || !all_gone(pass.reached, deadline).await {
                break;
            }
        }
        Left::Somebody
    }

    /// KILL in rounds, until two passes found nobody. What is found is stopped first, so that it
    /// cannot make more while the rest is looked for.
    async fn kill(&mut self) -> Left {
        let deadline = Instant::now() + KILL_PATIENCE;
        let mut empty_passes = 0;
        while Instant::now() < deadline {
            if self.send([Signal::STOP]).await.found == 0 {
                empty_passes += 1;
                if empty_passes == 2 {
                    return Left::Nobody;
                }
                continue;
            }
            empty_passes = 0;
            let pass = self.send([Signal::KILL]).await;
            if pass.reached.is_empty() && pass.found > 0 {
                break; // not ours to signal: no use in trying again
            }
            all_gone(pass.reached, deadline).await;
        }
        Left::Somebody
    }

    /// Sends signals to every live member.
    async fn send(&mut self, signals: impl Into<Vec<Signal>>) -> Pass {
        let (tree, signals) = (self.tree.clone(), signals.into());
        let pass = spawn_blocking(move || {
            let members = tree.members();
            let found = members.len();
            let mut reached: Vec<Member> = members.into_iter().filter_map(Member::hold).collect();
            reached.retain(|member| signals.iter().all(|signal| member.signal(*signal)));
            Pass { found, reached }
        });
        // A scan that panicked proves nothing; the proof looks again.
        let pass = pass.await.unwrap_or(Pass { found: 1, reached: Vec::new() });
        self.signalled.extend(pass.reached.iter().map(|member| member.stat.pid));
        pass
    }

    async fn proof(self, left: Left) -> StopProof {
        let tree = self.tree;
        let left: Vec<i32> = match left {
            Left::Nobody => Vec::new(),
            Left::Somebody => spawn_blocking(move || tree.members())
                .await
                .map(|members| members.into_iter().map(|stat| stat.pid).collect())
                .unwrap_or_default(),
        };
        let gone = self.signalled.iter().copied().filter(|pid| !left.contains(pid)).collect();
        StopProof { signalled: self.signalled.into_iter().collect(), gone, left }
    }
}

/// Waits until all of these have exited, or the time is over (`false`).
async fn all_gone(members: Vec<Member>, deadline: Instant) -> bool {
    let mut waits = JoinSet::new();
    for member in members {
        if let Ok(member) = readiness::watch(member, Interest::READABLE) {
            waits.spawn(async move { member.readable().await.map(drop) });
        }
    }
    timeout_at(deadline, async { while waits.join_next().await.is_some() {} }).await.is_ok()
}
