//! Closing: no new starts, and everything that runs is stopped with proof.

use std::time::Duration;

use lastbyte_sys::orphans;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use super::Engine;
use crate::stop::{StopPolicy, StopProof, Verb, stop_unowned};
use crate::tree::{Tree, with_survivors};
use crate::{Id, Process};

/// What becomes of processes that outlived their leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survivors {
    Stop,
    Leave,
}

/// What was stopped, and with what result. An ended process that nobody survived is not among it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CloseReport {
    pub stopped: Vec<(Id, StopProof)>,
    /// In a program that adopts orphans: what it has stopped of those that belong to no process
    /// any more, or nothing says to which.
    pub strangers: Option<StopProof>,
}

/// For what should come at once.
const PATIENCE: Duration = Duration::from_secs(5);

impl CloseReport {
    /// The answers to all stops.
    pub fn proofs(&self) -> impl Iterator<Item = &StopProof> {
        self.stopped.iter().map(|(_, proof)| proof).chain(&self.strangers)
    }
}

impl Engine {
    /// Refuses new starts from now on and stops all processes that have not ended, side by side.
    /// A start that is under way either is stopped too or leaves nothing behind.
    pub async fn close(&self, survivors: Survivors) -> CloseReport {
        self.inner.processes().closed = true;
        // One that hangs in a provider or on a dead mount finds the engine closed when it wakes, and
        // ends what it has started: nobody has to wait for that.
        _ = timeout(PATIENCE, self.inner.starting.until_none()).await;
        let to_stop = self.to_stop(survivors).await.into_iter();
        let to_stop = to_stop.map(|process| (process.clone(), process.spec().stop)).collect();
        let stopped = stop_all(to_stop, Verb::Close).await.into_iter();
        let mut stopped: Vec<_> = stopped.map(|(process, proof)| (process.id(), proof)).collect();
        // A timeout may still be stopping what its leader left behind.
        self.inner.stops.until_none().await;
        let strangers = match survivors {
            Survivors::Stop => self.stop_unowned(StopPolicy::default()).await,
            Survivors::Leave => None,
        };
        if strangers.is_some() {
            // What became of these is told once, with the strangers.
            stopped.iter_mut().for_each(|(_, proof)| proof.leave_out_unattributed());
        }
        self.inner.trees.close();
        if self.inner.registry.is_some() {
            self.inner.trees.remove_leftovers();
        }
        self.inner.logs.close();
        if let Some(journal) = self.inner.journal.clone() {
            journal.maintain_on_close().await;
        }
        CloseReport { stopped, strangers }
    }

    /// Stops the descendants of this program that belong to no process of its engines, or nothing
    /// says to which. `None` in a program that adopts no orphans: its children are its own matter.
    pub async fn stop_unowned(&self, policy: StopPolicy) -> Option<StopProof> {
        if orphans::adopts() { Some(stop_unowned(policy).await) } else { None }
    }

    async fn to_stop(&self, survivors: Survivors) -> Vec<Process> {
        let all: Vec<Process> = self.inner.processes().all().cloned().collect();
        let has_ended = |process: &Process| process.snapshot().ending().is_some();
        let (ended, mut to_stop): (Vec<_>, Vec<_>) = all.into_iter().partition(has_ended);
        if survivors == Survivors::Stop {
            to_stop.extend(survived(ended).await);
        }
        to_stop
    }
}

/// Stops these side by side, so that they share their scans, and waits for their endings. In the
/// order given. Goes on when the caller goes away.
pub async fn stop_all(
    processes: Vec<(Process, StopPolicy)>,
    verb: Verb,
) -> Vec<(Process, StopProof)> {
    let mut stops = JoinSet::new();
    for (nth, (process, policy)) in processes.into_iter().enumerate() {
        stops.spawn(async move {
            let proof = process.stop_by(policy, verb).await;
            // What could not be stopped is in the proof, and not waited for.
            _ = timeout(PATIENCE, process.ended()).await;
            (nth, process, proof)
        });
    }
    let stopped = tokio::spawn(stops.join_all()).await;
    let mut stopped = stopped.expect("a stop that fails says so in its proof");
    stopped.sort_unstable_by_key(|(nth, ..)| *nth);
    stopped.into_iter().map(|(_, process, proof)| (process, proof)).collect()
}

/// Those of the ended that somebody of their tree has outlived: looked for together, since most of
/// them have nobody and there may be many.
pub async fn survived(ended: Vec<Process>) -> Vec<Process> {
    let trees: Vec<Tree> = ended.iter().map(|process| process.tree().clone()).collect();
    let alive = spawn_blocking(move || with_survivors(&trees)).await;
    // A look that panicked excuses nobody.
    let alive = alive.unwrap_or_else(|_| vec![true; ended.len()]);
    ended.into_iter().zip(alive).filter(|(_, alive)| *alive).map(|(process, _)| process).collect()
}
