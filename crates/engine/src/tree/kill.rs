//! The end of a tree whose owner goes away in the middle: a panic, a runtime that shuts down.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_sys::Signal;
use lastbyte_sys::cgroup::{Leaf, wait_until_empty};

use super::members::{Tree, Way};

/// Kills its tree when it is dropped and was not disarmed. The leader's group is killed by the
/// leader's own drop; this reaches those who left it.
#[derive(Debug)]
pub(crate) struct KillOnDrop(Option<Tree>);

/// How long somebody who was killed is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

impl KillOnDrop {
    pub(crate) fn new(tree: Tree) -> Self {
        Self(Some(tree))
    }

    /// The leader has ended and is reaped: who survives it may live on.
    pub(crate) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let Some(tree) = self.0.take() else { return };
        if let Some(lease) = tree.lease() {
            // A leaf that cannot be killed now is tried again below.
            _ = lease.look(Leaf::kill);
        }
        // The rest takes its time. Without a thread nobody waits, and what is left of a leaf is
        // removed by the next start.
        _ = thread::Builder::new().spawn(move || tree.kill());
    }
}

impl Tree {
    /// Kills everybody that is reached and waits until they are gone; blocks.
    fn kill(self) -> io::Result<()> {
        match &self.way {
            Way::Leaf(lease) => {
                let events = lease.look(|leaf| leaf.kill().and_then(|()| leaf.events()))?;
                if let Some(events) = events {
                    wait_until_empty(events, PATIENCE)?;
                }
                lease.give_back_if_empty();
            }
            Way::Scan => self.kill_in_rounds()?,
            Way::Group => {}
        }
        Ok(())
    }

    /// Stopped first, so that they make no more while the rest is looked for.
    fn kill_in_rounds(&self) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let mut empty_looks = 0;
        while empty_looks < self.looks_for_proof() && Instant::now() < deadline {
            let found = self.hold()?;
            empty_looks = if found.seen == 0 { empty_looks + 1 } else { 0 };
            for signal in [Signal::STOP, Signal::KILL] {
                found.held.iter().for_each(|member| _ = member.signal(signal));
            }
        }
        Ok(())
    }
}
