//! For programs: the orphans that a subreaper adopts leave no zombies.

use std::io;
use std::time::Duration;

use lastbyte_sys::orphans;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until, timeout};

/// Makes this program the parent of whoever loses its own below it, so that nothing leaves a tree,
/// and ends their zombies for as long as it lives.
///
/// For a program of which every child is a leader or such an orphan. A library leaves this to its
/// program: it would take the status of children that the program started by other means.
#[derive(Debug)]
pub struct OrphanReaper {
    task: JoinHandle<()>,
}

/// Many end at once: their zombies can wait for each other, but not long.
const GATHER: Duration = Duration::from_millis(20);
/// A look that others disturb may miss one, and so there is another without being asked for.
const AT_LEAST_EVERY: Duration = Duration::from_secs(60);

impl OrphanReaper {
    /// Must be called on a runtime, which from then on has a handler for SIGCHLD: it is not ignored
    /// any more, whatever this program was started with.
    pub fn start() -> io::Result<Self> {
        let ends = signal(SignalKind::child())?;
        orphans::adopt()?;
        Ok(Self { task: tokio::spawn(reap_for_ever(ends)) })
    }
}

impl Drop for OrphanReaper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn reap_for_ever(mut ends: Signal) {
    loop {
        // A look that reaped somebody may have passed over his neighbour.
        while spawn_blocking(orphans::reap).await.is_ok_and(|reaped| reaped > 0) {}
        // Whichever it is, it is time to look.
        _ = timeout(AT_LEAST_EVERY, ends.recv()).await;
        sleep_until(Instant::now() + GATHER).await;
    }
}
