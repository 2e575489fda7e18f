//! Closing: no new starts, and everything that runs is stopped with proof.

use tokio::task::JoinSet;

use super::Engine;
use crate::snapshot::Phase;
use crate::stop::{StopProof, Verb};
use crate::{Id, Process};

/// What becomes of processes that outlived their leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survivors {
    Stop,
    Leave,
}

/// What was stopped, and with what result.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CloseReport {
    pub stopped: Vec<(Id, StopProof)>,
}

impl Engine {
    /// Refuses new starts from now on and stops all processes that have not ended, side by side.
    /// A start that is under way either is stopped too or leaves nothing behind.
    pub async fn close(&self, survivors: Survivors) -> CloseReport {
        self.inner.registry().closed = true;
        let mut starting = self.inner.starting.subscribe();
        // The sender is in the engine, which is here.
        _ = starting.wait_for(|count| *count == 0).await;
        let mut stops = JoinSet::new();
        for process in self.to_stop(survivors) {
            stops.spawn(async move {
                let proof = process.stop(Verb::Close).await;
                process.ended().await;
                (process.id(), proof)
            });
        }
        CloseReport { stopped: stops.join_all().await }
    }

    fn to_stop(&self, survivors: Survivors) -> Vec<Process> {
        let concerned = |process: &&Process| match process.snapshot().phase {
            Phase::Running | Phase::Draining => true,
            Phase::Ended(_) => survivors == Survivors::Stop,
        };
        self.inner.registry().all().filter(concerned).cloned().collect()
    }
}
