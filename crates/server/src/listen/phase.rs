//! The phases of a shutdown, as every part of the server sees them.

use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Accepts connections.
    Open,
    /// Answers what was asked and takes nothing more.
    Draining,
    /// Everything ends where it is.
    Cut,
}

/// Each part of a server has one until its own end, by which the server knows that none is left.
pub(super) type Phases = watch::Receiver<Phase>;

/// Waits for this phase or a later one. A server that is gone has cut everything. Cancel-safe.
pub(super) async fn until(phases: &mut Phases, phase: Phase) {
    _ = phases.wait_for(|now| *now >= phase).await.map(drop);
}
