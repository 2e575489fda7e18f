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

/// Sets the phase, and knows when no part is left.
#[derive(Debug)]
pub(super) struct Announcer(watch::Sender<Phase>);

/// Each part of a server has one until its own end.
#[derive(Debug, Clone)]
pub(super) struct Phases(watch::Receiver<Phase>);

pub(super) fn phases() -> (Announcer, Phases) {
    let (sender, receiver) = watch::channel(Phase::Open);
    (Announcer(sender), Phases(receiver))
}

impl Announcer {
    pub(super) fn announce(&self, phase: Phase) {
        self.0.send_replace(phase);
    }

    /// Waits until every part has ended. Cancel-safe.
    pub(super) async fn until_all_ended(&self) {
        self.0.closed().await;
    }
}

impl Phases {
    /// Waits for this phase or a later one. A server that is gone has cut everything. Cancel-safe.
    pub(super) async fn until(&mut self, phase: Phase) {
        _ = self.0.wait_for(|now| *now >= phase).await.map(drop);
    }
}
