//! Kills a tree whose owner goes away unexpectedly: a panic, a runtime shutdown.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_sys::Signal;
use lastbyte_sys::cgroup::{Cgroup, wait_until_empty};

use super::members::{Members, SCANS_FOR_PROOF, Tree, Way};

/// Kills its tree when dropped, unless disarmed. The leader's own drop kills the leader's group;
/// this reaches the processes that left it.
#[derive(Debug)]
pub(crate) struct KillOnDrop(Option<Tree>);

/// How long to wait for killed processes to exit.
const PATIENCE: Duration = Duration::from_secs(5);

impl KillOnDrop {
    pub(crate) fn new(tree: Tree) -> Self {
        Self(Some(tree))
    }

    /// Disarms it once the leader is reaped: surviving processes may live on.
    pub(crate) fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let Some(tree) = self.0.take() else { return };
        if let Some(lease) = tree.lease() {
            // If this fails, the thread below tries again.
            _ = lease.with_cgroup(Cgroup::kill);
        }
        // The rest takes time. If no thread can be created, nothing waits, and the next start
        // removes what is left of a cgroup.
        _ = thread::Builder::new().spawn(move || tree.kill());
    }
}

impl Tree {
    /// Kills every process it finds and waits until they are gone. Blocks.
    fn kill(self) -> io::Result<()> {
        match &self.way {
            Way::Cgroup(lease) => {
                let events =
                    lease.with_cgroup(|cgroup| cgroup.kill().and_then(|()| cgroup.events()))?;
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

    /// Stops the processes first, so that they cannot fork while the rest is searched for.
    fn kill_in_rounds(&self) -> io::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        let mut empty_scans = 0;
        while empty_scans < SCANS_FOR_PROOF && Instant::now() < deadline {
            let found = Members::open(&self.members()?);
            empty_scans = if found.seen == 0 { empty_scans + 1 } else { 0 };
            for signal in [Signal::STOP, Signal::KILL] {
                found.held.iter().for_each(|member| _ = member.signal(signal));
            }
        }
        Ok(())
    }
}
