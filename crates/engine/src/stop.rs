//! Stopping a tree for sure: the stop signal, a grace, KILL, and a look at what is left.

mod round;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lastbyte_sys::Signal;

use crate::tree::{Reach, Tree};
use round::{Left, Round};

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopProof {
    /// Every process that was sent a signal.
    pub signalled: Vec<i32>,
    /// Those of them that are gone. A zombie is gone.
    pub gone: Vec<i32>,
    /// What still lives, or could not be shown to be gone.
    pub left: Vec<i32>,
    /// How the tree was reached.
    pub reach: Reach,
}

/// Whether KILL was needed; shared with the owner, which tells it in the ending.
#[derive(Debug, Clone, Default)]
pub(crate) struct Escalation(Arc<AtomicBool>);

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
    pub(crate) fn happens(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn happened(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl StopProof {
    /// Nothing is known to be gone, the leader least of all.
    pub(crate) fn unproved(tree: &Tree) -> Self {
        Self { signalled: vec![], gone: vec![], left: vec![tree.leader()], reach: tree.reach() }
    }
}

/// Stops everything of the tree and says what became of it.
pub(crate) async fn stop(tree: Tree, policy: StopPolicy, escalation: Escalation) -> StopProof {
    let mut proof = stop_reached(tree.clone(), policy, &escalation).await;
    // Who has the right can leave a leaf: a look by the cookie finds those.
    if proof.left.is_empty()
        && let Some(strays) = tree.strays().await
    {
        let more = stop_reached(strays, policy, &escalation).await;
        proof.signalled.extend(more.signalled);
        proof.gone.extend(more.gone);
        proof.left.extend(more.left);
    }
    if proof.left.is_empty() {
        tree.give_back_if_empty();
    }
    proof
}

async fn stop_reached(tree: Tree, policy: StopPolicy, escalation: &Escalation) -> StopProof {
    let mut round = Round::new(tree);
    let ask_first = policy.signal != Signal::KILL && !policy.grace.is_zero();
    let mut left = match ask_first {
        true => round.ask(policy).await,
        false => Left::Somebody,
    };
    if left == Left::Somebody {
        if ask_first {
            escalation.happens();
        }
        left = round.kill().await;
    }
    round.proof(left).await
}
