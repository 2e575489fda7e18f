//! For programs: the orphans that a subreaper adopts leave no zombies.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use lastbyte_sys::child_ends::ChildEnds;
use lastbyte_sys::{orphans, own_signals};

/// Makes this program the parent of whoever loses its own below it, so that nothing leaves a tree,
/// and ends their zombies for as long as it lives.
///
/// For a program of which every child is a leader or such an orphan. A library leaves this to its
/// program: it would take the status of children that the program started by other means.
#[derive(Debug)]
pub struct OrphanReaper {
    ends: ChildEnds,
    stopped: Arc<AtomicBool>,
    thread: Thread,
}

/// Many end at once: their zombies can wait for each other, but not long. Meanwhile nothing wakes
/// the thread, so that a busy program pays for a look ten times a second and not for each child.
const GATHER: Duration = Duration::from_millis(100);
/// A look that others disturb may miss one, and so there is another without being asked for.
const AT_LEAST_EVERY: Duration = Duration::from_secs(60);

impl OrphanReaper {
    /// From then on the program has a handler for SIGCHLD: it is not ignored any more, whatever this
    /// program was started with.
    pub fn start() -> io::Result<Self> {
        let ends = ChildEnds::listen()?;
        orphans::adopt()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&stopped);
        // Of its own: a task would share the ends of children with those who wait for them.
        let reaper = thread::Builder::new().name("orphans".into());
        let reaper = reaper.spawn(move || reap_until(&watched, ends))?;
        Ok(Self { ends, stopped, thread: reaper.thread().clone() })
    }
}

impl Drop for OrphanReaper {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        self.ends.interrupt();
        self.thread.unpark();
    }
}

fn reap_until(stopped: &AtomicBool, ends: ChildEnds) {
    own_signals::leave_ends_of_children_alone();
    while !stopped.load(Ordering::Acquire) {
        // A look that reaped somebody may have passed over his neighbour.
        while orphans::reap() > 0 {}
        ends.wait(AT_LEAST_EVERY);
        thread::park_timeout(GATHER);
    }
}
