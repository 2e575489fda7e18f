//! What the owner has in every phase, and what it does alike in all that follow the leader's exit.

use std::sync::Arc;

use lastbyte_sys::Signal;
use tokio::task::spawn_blocking;

use crate::desk::{Command, Delivery, Desk, ResizeError, StopTicket};
use crate::disk::Share;
use crate::launch::DrainRule;
use crate::pump::Pump;
use crate::stdin::WriteError;
use crate::stop::Escalation;
use crate::tree::{KillOnDrop, Tree};
use crate::under_way::UnderWay;

/// What every phase has.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) pump: Pump,
    pub(crate) tree: Tree,
    /// Ends the tree if the owner goes before the leader is reaped.
    pub(crate) guard: KillOnDrop,
    pub(crate) drain: DrainRule,
    pub(crate) escalation: Escalation,
    /// Shared with the handle, which has it after the owner is gone.
    pub(crate) share: Arc<Share>,
    /// The stops of this engine, which a close waits for.
    pub(crate) stops: UnderWay,
}

impl Core {
    /// Publishes what the pump has stored, then lets it give back what that calls dropped.
    pub(super) fn publish(&mut self, desk: &Desk) {
        let extent = self.pump.extent();
        desk.publish_extent(extent.clone());
        self.pump.give_back(&extent);
        self.share.set(self.pump.kept());
    }

    /// Stores and publishes what lies ready at this instant, step by step, so that the quota holds
    /// even when a large pipe is emptied; returns how many bytes.
    pub(super) fn store_ready(&mut self, desk: &Desk) -> usize {
        let bytes = self.pump.pass(|writer| {
            let extent = writer.extent();
            desk.publish_extent(extent.clone());
            writer.give_back(&extent);
        });
        self.publish(desk);
        bytes
    }

    /// All logs together are too large: this one keeps only its ends from now on.
    pub(super) fn squeeze(&mut self, desk: &Desk) {
        self.pump.squeeze();
        self.publish(desk);
    }

    /// Answers a command that comes after the leader's exit.
    pub(super) fn answer_late(&mut self, command: Command, desk: &Desk) {
        match command {
            Command::Signal { signal, reply } => {
                let tree = self.tree.clone();
                // Judged by listing live members: a zombie takes any signal. A caller that went
                // away does not need the answer.
                spawn_blocking(move || _ = reply.send(signal_survivors(&tree, signal)));
            }
            // As above, for each reply here.
            Command::Write(write) => _ = write.reply.send(Err(WriteError::Exited)),
            Command::Squeeze => self.squeeze(desk),
            Command::Resize { reply, .. } => _ = reply.send(Err(ResizeError::Exited)),
            Command::Stopping { reply, .. } => {
                let escalation = Escalation::default();
                _ = reply.send(StopTicket { escalation, hurry: false });
            }
        }
    }
}

pub(super) fn signal_survivors(tree: &Tree, signal: Signal) -> Delivery {
    match tree.signal_group(signal) {
        0 => Delivery::Nobody,
        count => Delivery::Survivors(count),
    }
}
