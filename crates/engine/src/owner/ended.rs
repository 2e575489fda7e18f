//! After the ending: late output, until the last holder is gone.

use lastbyte_sys::ExitWatch;
use tokio::io::unix::AsyncFd;

use super::core::Core;
use crate::desk::{Command, Desk};

/// The ending is published. The pipes stay open, so that survivors neither lose their output nor
/// die of SIGPIPE.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(super) core: Box<Core>,
    pub(super) exit: AsyncFd<ExitWatch>,
}

enum Event {
    Stored,
    Command(Command),
}

impl Ended {
    pub(super) async fn until_closed(self, desk: &mut Desk) {
        let Self { mut core, exit } = self;
        drop(exit);
        while !core.pump.ended() {
            let event = tokio::select! {
                _ = core.pump.step() => Event::Stored,
                command = desk.command() => Event::Command(command),
            };
            match event {
                Event::Stored => core.publish(desk),
                Event::Command(command) => core.answer_late(command, desk),
            }
        }
        desk.publish_closed();
    }
}
