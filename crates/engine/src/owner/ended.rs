//! After the ending: late output, until the last holder is gone.

use lastbyte_output::log::Writer;

use super::core::Core;
use super::exit::Exit;
use crate::clock::until;
use crate::owner::owner_end::{Command, OwnerEnd};

/// The ending is published. The pipes stay open, so that survivors neither lose their output nor
/// die of SIGPIPE.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(super) core: Box<Core>,
    /// `None` after a take-over.
    pub(super) exit: Option<Exit>,
}

impl Ended {
    /// Returns the log, to which nothing will be added.
    pub(super) async fn until_closed(self, owner_end: &mut OwnerEnd) -> Writer {
        let Self { mut core, exit } = self;
        drop(exit);
        core.pump.close_ended();
        while !core.pump.ended() {
            let close_at = core.pump.close_at();
            tokio::select! {
                _ = core.pump.step() => core.publish(owner_end),
                () = until(close_at) => core.pump.close_ended(),
                command = owner_end.command() => match command {
                    // The caller may have gone away.
                    Command::LeaveReader { reply } => _ = reply.send(core.pump.leave_reader()),
                    command => core.answer_late(command, owner_end),
                },
            }
        }
        owner_end.publish_closed();
        core.pump.into_log()
    }
}
