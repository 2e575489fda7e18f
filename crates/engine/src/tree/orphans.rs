//! Reaps the orphans that a program adopts as a subreaper.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use lastbyte_sys::child_exits::ChildExits;
use lastbyte_sys::{orphans, own_signals};

/// Makes this program the subreaper of its descendants, so that nothing leaves a tree, and reaps
/// the orphans as long as this value lives.
///
/// Only for a program whose every child is a leader or such an orphan. A library must leave this to
/// its program: it would take the status of children that the program started by other means.
#[derive(Debug)]
pub struct OrphanReaper {
    exits: ChildExits,
    stopped: Arc<AtomicBool>,
    thread: Thread,
}

/// How long to gather exits, because many happen at once. Nothing wakes the thread meanwhile, so
/// that a busy program scans ten times a second and not once per child.
const GATHER: Duration = Duration::from_millis(100);
/// A scan may miss a child if others exit meanwhile, so scan at least this often.
const AT_LEAST_EVERY: Duration = Duration::from_secs(60);

impl OrphanReaper {
    /// Installs a SIGCHLD handler, so the signal is no longer ignored, even if the program was
    /// started that way.
    pub fn start() -> io::Result<Self> {
        let exits = ChildExits::listen()?;
        orphans::adopt()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&stopped);
        // A thread of its own: a task would share SIGCHLD with other waiters.
        let reaper = thread::Builder::new().name("orphans".into());
        let reaper = reaper.spawn(move || reap_until(&watched, exits))?;
        Ok(Self { exits, stopped, thread: reaper.thread().clone() })
    }
}

impl Drop for OrphanReaper {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        self.exits.interrupt();
        self.thread.unpark();
    }
}

fn reap_until(stopped: &AtomicBool, exits: ChildExits) {
    own_signals::block_sigchld();
    while !stopped.load(Ordering::Acquire) {
        // A scan that reaped a child may have skipped the next one.
        while orphans::reap() > 0 {}
        exits.wait(AT_LEAST_EVERY);
        thread::park_timeout(GATHER);
    }
}
