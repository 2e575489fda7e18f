//! The worker's side of its keeper: shows that it lives, and looks after keeper and stand-in.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use lastbyte_keeper::{Health, Joined};
use lastbyte_server::{KeptBy, UpgradeAsked};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use super::instance::{self, StateLock};
use super::keep::describe;

const EVERY: Duration = Duration::from_secs(1);

/// A worker's keeper, what clients are told of it, and the upgrades that they ask for.
pub(crate) type Kept<'a> = (&'a Joined, &'a Arc<KeptBy>, mpsc::Receiver<UpgradeAsked>);

/// A task that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Beating {
    task: JoinHandle<()>,
}

/// What clients are told of the keeper, and what they ask for.
pub(crate) fn kept_by(joined: &Joined) -> (Arc<KeptBy>, mpsc::Receiver<UpgradeAsked>) {
    // They are answered one after the other.
    let (upgrades, asked) = mpsc::channel(1);
    let kept_by = Arc::new(KeptBy {
        pid: joined.keeper.unsigned_abs(),
        worker_started: SystemTime::now(),
        restarts: joined.restarts,
        last_crash: joined.last_death.map(describe),
        is_gone: AtomicBool::new(false),
        upgrades,
    });
    (kept_by, asked)
}

/// Begins to show that this worker lives.
pub(crate) fn beat(joined: Arc<Joined>, kept_by: Arc<KeptBy>, state: &Path) -> Beating {
    let state = state.to_owned();
    let task = tokio::spawn(async move {
        let lock = joined.take_lock();
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            match joined.beat() {
                Ok(Health::Good) => {}
                Ok(Health::NewStandIn) => tracing::warn!("the stand-in died; made another"),
                Ok(Health::KeeperGone) => break,
                Err(error) => tracing::error!("cannot make another stand-in: {error}"),
            }
        }
        kept_by.is_gone.store(true, Ordering::Relaxed);
        let keeper = joined.keeper;
        tracing::error!(keeper, "the keeper is gone: a crash now loses all running commands");
        let _files = OwnFiles { lock: lock.and_then(|lock| StateLock::adopt(lock).ok()), state };
        std::future::pending().await
    });
    Beating { task }
}

impl Drop for Beating {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the keeper would have removed.
struct OwnFiles {
    lock: Option<StateLock>,
    state: std::path::PathBuf,
}

impl Drop for OwnFiles {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // A file left behind names a socket without a listener.
            _ = instance::forget_address(&self.state);
        }
    }
}
