//! After the ending: late output, until the last holder is gone.

use super::core::Core;
use crate::desk::{Command, Desk};

/// The ending is published. The pipes stay open, so that survivors neither lose their output nor
/// die of SIGPIPE.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(super) core: Box<Core>,
}

enum Event {
    Stored,
    Command(Command),
}

impl Ended {
    pub(super) async fn until_closed(mut self, desk: &mut Desk) {
        self.core.pump.close_ended();
        while !self.core.pump.ended() {
            let event = tokio::select! {
                _ = self.core.pump.step() => Event::Stored,
                command = desk.command() => Event::Command(command),
            };
            match event {
                Event::Stored => self.core.publish(desk),
                Event::Command(command) => self.core.answer_late(command, desk),
            }
        }
        desk.publish_closed();
    }
}
