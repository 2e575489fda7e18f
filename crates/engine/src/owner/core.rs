//! What the owner has in every phase, and how it answers commands after the leader's exit.

use std::io::ErrorKind;
use std::sync::Arc;

use lastbyte_output::log::Writer;
use lastbyte_sys::Signal;
use tokio::task::spawn_blocking;

use crate::engine::disk::Share;
use crate::engine::in_flight::InFlight;
use crate::launch::DrainRule;
use crate::notes::Notes;
use crate::owner::KernelLimits;
use crate::owner::owner_end::{Command, Delivery, OwnerEnd, ResizeError, StopTicket};
use crate::owner::pump::Pump;
use crate::owner::stdin::WriteError;
use crate::stop::Escalation;
use crate::tree::{KillOnDrop, Tree};

#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) pump: Pump,
    pub(crate) tree: Tree,
    /// Kills the tree if the owner goes away before the leader is reaped.
    pub(crate) guard: KillOnDrop,
    pub(crate) drain: DrainRule,
    pub(crate) escalation: Escalation,
    /// Shared with the handle, which keeps it after the owner is gone.
    pub(crate) share: Arc<Share>,
    /// The stops of this engine, which a close waits for.
    pub(crate) stops: InFlight,
    pub(crate) notes: Notes,
    pub(crate) limits: Option<KernelLimits>,
}

impl Core {
    /// Publishes what the pump has stored, then frees the space of what is published as dropped.
    pub(super) fn publish(&mut self, owner_end: &OwnerEnd) {
        if self.pump.log().failed().is_some() {
            self.notes.note_progress(self.pump.log().progress());
        }
        publish(self.pump.log_mut(), owner_end);
        self.share.set(self.pump.log().kept());
    }

    /// Stores and publishes what is ready now, step by step, so that the quota holds even when a
    /// large pipe is emptied. Returns the number of bytes.
    pub(super) fn store_ready(&mut self, owner_end: &OwnerEnd) -> usize {
        let bytes = self.pump.pass(|writer| publish(writer, owner_end));
        self.publish(owner_end);
        bytes
    }

    /// All logs together are too large: this one keeps only its head and tail from now on.
    pub(super) fn squeeze(&mut self, owner_end: &OwnerEnd) {
        self.pump.log_mut().squeeze();
        self.publish(owner_end);
    }

    /// Answers a command that arrives after the leader's exit.
    pub(super) fn answer_late(&mut self, command: Command, owner_end: &OwnerEnd) {
        match command {
            Command::Signal { signal, reply } => {
                let tree = self.tree.clone();
                // Decided by listing live members, because a zombie takes any signal. The caller
                // may have gone away.
                spawn_blocking(move || _ = reply.send(signal_survivors(&tree, signal)));
            }
            // As above, for each reply here.
            Command::Write(write) => _ = write.reply.send(Err(WriteError::Exited)),
            Command::Squeeze => self.squeeze(owner_end),
            Command::Input { reply } => _ = reply.send(None),
            Command::TypeEnd => {}
            Command::SecretInput { reply, .. } => _ = reply.send(Ok(())),
            Command::LeaveReader { reply } => _ = reply.send(Err(ErrorKind::ResourceBusy.into())),
            Command::Resize { reply, .. } => _ = reply.send(Err(ResizeError::Exited)),
            Command::Stopping { reply, .. } => {
                let escalation = Escalation::default();
                _ = reply.send(StopTicket { escalation, hurry: false });
            }
        }
    }
}

fn publish(log: &mut Writer, owner_end: &OwnerEnd) {
    let extent = log.extent();
    owner_end.publish_extent(extent.clone());
    log.give_back(&extent);
}

fn signal_survivors(tree: &Tree, signal: Signal) -> Delivery {
    match tree.signal_group(signal) {
        0 => Delivery::Nobody,
        count => Delivery::Survivors(count),
    }
}
