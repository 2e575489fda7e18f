//! The stages of a shutdown, as every part of the server sees them.

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Accepts connections.
    Open,
    /// Answers what was asked and takes nothing more.
    Draining,
    /// Everything ends where it is.
    Cut,
}

/// Each part of a server has one until its own end, by which the server knows that none is left.
pub(super) type Stages = watch::Receiver<Stage>;

/// Waits for this stage or a later one. A server that is gone has cut everything. Cancel-safe.
pub(super) async fn until(stages: &mut Stages, stage: Stage) {
    _ = stages.wait_for(|now| *now >= stage).await.map(drop);
}
