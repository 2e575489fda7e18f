//! The map from id to handle, and what is done to many processes at once.

mod adopt;
mod close;
mod list;
mod registry;
mod restore;
mod retention;
mod spare_logs;
mod start;
mod sweep;

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastbyte_output::log::Spares;
use tokio::sync::{Notify, Semaphore};

pub use close::{CloseReport, Survivors, survived};
pub use list::{Filter, Page, PhaseIs, Phases};
pub use registry::ForgetError;
pub use restore::Restored;
pub use retention::Retention;
pub use start::{Refused, StartError, Started};

use crate::counts::Counts;
use crate::disk::Disk;
use crate::feed::{EventAbout, EventKind, Feed};
use crate::id::Ids;
use crate::journal::{HashKey, Journal, Replayed};
use crate::process::Readers;
use crate::pump::MOST_LARGE_PIPES;
use crate::sandbox::{Sandbox, SandboxError, Sandboxes};
use crate::settings::{History, Settings};
use crate::spawner::{InProcess, Spawner};
use crate::tree::{Reach, Trees};
use crate::under_way::UnderWay;
use crate::{Id, Process};
use registry::Registry;
use spare_logs::spare_logs;

/// Starts processes and knows those there are. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    settings: Settings,
    spawner: Arc<dyn Spawner>,
    trees: Trees,
    sandboxes: Sandboxes,
    /// The one lock of the engine: taken, read or changed, released; never over an await.
    registry: Mutex<Registry>,
    /// How many starts are under way.
    starting: UnderWay,
    /// How many stops are.
    stops: UnderWay,
    /// A process has ended: time to see what can be forgotten.
    ended: Arc<Notify>,
    large_pipes: Arc<Semaphore>,
    disk: Arc<Disk>,
    counts: Arc<Counts>,
    feed: Feed,
    readers: Arc<Readers>,
    /// Where logs stay, and descriptors are many: a program that runs one command has no use for
    /// them.
    spares: Option<Arc<Spares>>,
    ids: Ids,
    journal: Option<Arc<Journal>>,
    /// What launches of one key are compared by.
    hash_key: HashKey,
    restored: Restored,
}

impl Engine {
    /// An engine whose processes are children of this program. Must be called on a runtime.
    pub fn new(settings: Settings) -> io::Result<Self> {
        let spawner = InProcess::start(settings.spawners, settings.mechanism)?;
        Self::with_spawner(settings, Arc::new(spawner))
    }

    /// An engine whose processes come from elsewhere.
    pub fn with_spawner(settings: Settings, spawner: Arc<dyn Spawner>) -> io::Result<Self> {
        let logs = settings.state.join("logs");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&logs)?;
        let (journal, replayed) = match settings.history {
            History::None => (None, Replayed::default()),
            History::Journal => {
                let (journal, replayed) = Journal::open(&settings.state)?;
                (Some(Arc::new(journal)), replayed)
            }
        };
        let ended = Arc::new(Notify::new());
        let counts = Arc::new(Counts::default());
        let mut inner = Inner {
            disk: Arc::new(Disk::new(settings.disk_quota, Arc::clone(&ended))),
            trees: Trees::new(settings.reach, settings.mechanism)?,
            sandboxes: Sandboxes::new(
                settings.enforcement,
                settings.mechanism,
                &settings.state,
                &settings.hidden,
            ),
            settings,
            spawner,
            registry: Mutex::default(),
            starting: UnderWay::new(),
            stops: UnderWay::new(),
            ended,
            large_pipes: Arc::new(Semaphore::new(MOST_LARGE_PIPES)),
            feed: Feed::new(Arc::clone(&counts)),
            counts,
            readers: Arc::default(),
            spares: journal.as_ref().and_then(|_| spare_logs(logs)),
            ids: Ids::after(replayed.pasts.keys().last().copied()),
            hash_key: journal.as_ref().map_or_else(HashKey::random, |journal| journal.key()),
            journal,
            restored: Restored::default(),
        };
        inner.restored = inner.restore(replayed)?;
        let engine = Self { inner: Arc::new(inner) };
        let ended = Arc::clone(&engine.inner.ended);
        tokio::spawn(sweep::keep_sweeping(Arc::downgrade(&engine.inner), ended));
        Ok(engine)
    }

    /// The process with this id.
    pub fn get(&self, id: Id) -> Option<Process> {
        self.inner.registry().get(id)
    }

    /// What an earlier engine on the same state folder has left to this one.
    pub fn restored(&self) -> &Restored {
        &self.inner.restored
    }

    /// What happens to its processes, in one order.
    pub fn feed(&self) -> Feed {
        self.inner.feed.clone()
    }

    /// What it has counted since it was made.
    pub fn counts(&self) -> &Counts {
        &self.inner.counts
    }

    /// What all logs together take on disk, in bytes.
    pub fn disk_used(&self) -> u64 {
        self.inner.disk.used()
    }

    /// What they may take before the oldest of those that have ended go.
    pub fn disk_quota(&self) -> u64 {
        self.inner.settings.disk_quota
    }

    /// Whether a command in this directory would be started under this policy, as far as that can be
    /// known before.
    pub fn check_sandbox(&self, sandbox: &Sandbox, cwd: &Path) -> Result<(), SandboxError> {
        self.inner.sandboxes.confinement(sandbox, cwd, None).map(drop)
    }

    /// How the trees of its processes are reached: the best that was found when it was made.
    pub fn reach(&self) -> Reach {
        self.inner.trees.reach()
    }

    /// Forgets an ended process and removes its log.
    pub fn forget(&self, id: Id) -> Result<(), ForgetError> {
        // Out of sight first: a start with its key must not attach to one whose log is going.
        let (process, keyed) = self.inner.registry().take_out(id)?;
        // Then written down: an engine that goes here leaves files that the next one removes.
        self.inner.journal.iter().for_each(|journal| journal.forgotten(id));
        if let Err(source) = process.place().remove() {
            // While a file is stuck the process stays, and can be tried again.
            self.inner.registry().put_back(process, keyed);
            return Err(ForgetError::Remove { id, source });
        }
        self.inner.readers.forget(id);
        let about = Arc::new(EventAbout::of(process.about()));
        self.inner.feed.post(&about, EventKind::Forgotten);
        process.tree().give_back_if_empty();
        Ok(())
    }
}

impl Inner {
    fn registry(&self) -> MutexGuard<'_, Registry> {
        // Every change to the registry is complete in itself, so a panic leaves it whole.
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn logs(&self) -> PathBuf {
        self.settings.state.join("logs")
    }
}

impl Drop for Inner {
    /// Wakes the sweeper, which then finds no engine and goes.
    fn drop(&mut self) {
        self.ended.notify_one();
    }
}
