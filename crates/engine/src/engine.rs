//! The map from id to handle, and what is done to many processes at once.
//!
//! `start` checks a launch and reserves its key, `key_conflict` says why it cannot, `adopt` gives the
//! child a log and an owner, `spawner` makes the child, `gates` says which commands have never run.
//! `process_map` is the map and `index` finds in it, `list` and `sweep` read and thin it by the rules of
//! `retention`, `close` stops everything, `restore` reads what an earlier engine left, `boot` knows whether
//! the machine went down since, and `take_over` goes on with what runs. `logs` is the pool of log files,
//! `disk` what all logs take together, `in_flight` the starts and stops that a close waits for.

mod adopt;
mod boot;
mod caps;
mod close;
pub(crate) mod disk;
mod gates;
pub(crate) mod in_flight;
mod index;
mod key_conflict;
mod list;
mod logs;
mod process_map;
mod restore;
mod retention;
pub(crate) mod spawner;
mod start;
mod sweep;
mod take_over;

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastbyte_output::log::Pool;
use lastbyte_sys::registry::Registry;
use tokio::sync::{Notify, Semaphore, watch};

pub use crate::journal::{
    Field, JournalState, journal_file, recorded_processes, set_aside_folders,
};
pub use caps::{CapReached, Caps};
pub use close::{CloseReport, Survivors, stop_all, survived};
pub use key_conflict::Difference;
pub use list::{Filter, Page, PhaseKind, Phases};
pub use process_map::ForgetError;
pub use restore::Restored;
pub use retention::Retention;
pub use start::{Refused, StartError, Started};
pub use take_over::FromKeeper;

use crate::counts::Counts;
use crate::engine::disk::Disk;
use crate::engine::in_flight::InFlight;
use crate::engine::spawner::{InProcess, Spawner};
use crate::feed::{EventKind, Feed, Subject};
use crate::id::Ids;
use crate::journal::{HashKey, Journal, Opening, Replayed, SetAside};
use crate::owner::pump::MOST_LARGE_PIPES;
use crate::process::Readers;
use crate::sandbox::{Sandbox, SandboxError, Sandboxes};
use crate::settings::{History, Settings};
use crate::tree::{Reach, Trees};
use crate::{Id, Process};
use gates::Gates;
use logs::pool;
use process_map::ProcessMap;

/// One start that a spawner works on, and the next one.
const TURNS_PER_SPAWNER: usize = 2;

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
    processes: Mutex<ProcessMap>,
    /// How many starts are under way.
    starting: InFlight,
    /// Limits the starts that hold descriptors to as many as keep the spawners busy. So a burst of
    /// starts does not take all descriptors at once, and few starts are under way when the server is
    /// killed.
    turns: Semaphore,
    /// How many stops are.
    stops: InFlight,
    /// A process has ended: time to see what can be forgotten.
    ended: Arc<Notify>,
    large_pipes: Arc<Semaphore>,
    disk: Arc<Disk>,
    counts: Arc<Counts>,
    feed: Feed,
    readers: Arc<Readers>,
    /// The files of logs that no process has.
    logs: Arc<Pool>,
    ids: Ids,
    journal: Option<Arc<Journal>>,
    /// For starts with a key; `None` without a journal.
    gates: Option<Gates>,
    /// What launches of one key are compared by.
    hash_key: HashKey,
    restored: Restored,
    /// Where processes are entered for a keeper.
    registry: Option<Registry>,
}

impl Engine {
    /// An engine whose processes are children of this program. Must be called on a runtime.
    pub fn new(settings: Settings) -> io::Result<Self> {
        let spawner = InProcess::start(settings.spawners(), settings.mechanism)?;
        Self::with_spawner(settings, Arc::new(spawner))
    }

    /// As [`Engine::new`], in a program that has a keeper: goes on with what was running when the
    /// worker before this one died.
    pub fn kept(settings: Settings, kept: FromKeeper) -> io::Result<Self> {
        kept.begin();
        let spawner = InProcess::start(settings.spawners(), settings.mechanism)?;
        Self::build(settings, Arc::new(spawner), Some(kept))
    }

    /// An engine whose processes come from elsewhere.
    pub fn with_spawner(settings: Settings, spawner: Arc<dyn Spawner>) -> io::Result<Self> {
        Self::build(settings, spawner, None)
    }

    fn build(
        settings: Settings,
        spawner: Arc<dyn Spawner>,
        kept: Option<FromKeeper>,
    ) -> io::Result<Self> {
        let (registry, inherited) = kept.map(|kept| (kept.registry, kept.inherited)).unzip();
        let logs = settings.state.join("logs");
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&logs)?;
        let mut aside = SetAside::new(&settings.state);
        let mut unsynced_since = None;
        let (journal, mut replayed) = match settings.history {
            History::None => (None, Replayed::default()),
            History::Journal => {
                unsynced_since = boot::unsynced_since(&settings.state);
                let is_first = |registry: &Registry| registry.header().generation.load(SeqCst) <= 1;
                let is_first = registry.as_ref().is_none_or(is_first);
                let opening = if is_first { Opening::AtStart } else { Opening::AtTakeOver };
                let (journal, replayed) = Journal::open(&settings.state, &mut aside, opening)?;
                (Some(Arc::new(journal)), replayed)
            }
        };
        let gates = journal.as_ref().and_then(|_| Gates::open(&settings.state).ok());
        let ended = Arc::new(Notify::new());
        let counts = Arc::new(Counts::default());
        let ids = Ids::after(replayed.pasts.keys().last().copied(), settings.id_tag);
        let mut inner = Inner {
            disk: Arc::new(Disk::new(settings.disk_quota, Arc::clone(&ended))),
            trees: Trees::new(settings.reach, settings.mechanism)?,
            sandboxes: Sandboxes::new(&settings),
            turns: Semaphore::new(TURNS_PER_SPAWNER * settings.spawners().max(1)),
            logs: Arc::new(pool(logs, settings.history, &replayed)),
            settings,
            spawner,
            processes: Mutex::default(),
            starting: InFlight::default(),
            stops: InFlight::default(),
            ended,
            large_pipes: Arc::new(Semaphore::new(MOST_LARGE_PIPES)),
            feed: Feed::new(Arc::clone(&counts), registry.map(|registry| registry.header())),
            counts,
            readers: Arc::default(),
            ids,
            hash_key: journal.as_ref().map_or_else(HashKey::random, |journal| journal.key()),
            journal,
            gates,
            restored: Restored::default(),
            registry,
        };
        inner.take_back_unstarted(&mut replayed)?;
        let inherited = inherited.unwrap_or_default();
        inner.restored = inner.restore(replayed, aside, inherited, unsynced_since)?;
        inner.trees.remove_leftovers();
        if inner.journal.is_some() {
            boot::note(&inner.settings.state);
        }
        let engine = Self { inner: Arc::new(inner) };
        let ended = Arc::clone(&engine.inner.ended);
        tokio::spawn(sweep::keep_sweeping(Arc::downgrade(&engine.inner), ended));
        Ok(engine)
    }

    /// The process with this id.
    pub fn get(&self, id: Id) -> Option<Process> {
        self.inner.processes().get(id)
    }

    /// What an earlier engine on the same state folder has left to this one.
    pub fn restored(&self) -> &Restored {
        &self.inner.restored
    }

    /// Whether its journal is on disk, and changes of that; `None` without a journal.
    pub fn journal_state(&self) -> Option<watch::Receiver<JournalState>> {
        self.inner.journal.as_ref().map(|journal| journal.state())
    }

    /// As [`Engine::journal_state`], after a check whether the file is still there. It is written
    /// again if it is gone.
    pub fn journal_now(&self) -> Option<JournalState> {
        let journal = self.inner.journal.as_ref()?;
        journal.write();
        Some(journal.state().borrow().clone())
    }

    /// What happens to its processes, in one order.
    pub fn feed(&self) -> Feed {
        self.inner.feed.clone()
    }

    /// What it has counted since it was made.
    pub fn counts(&self) -> &Counts {
        &self.inner.counts
    }

    /// How long ended processes are kept, and how many.
    pub fn retention(&self) -> &Retention {
        &self.inner.settings.retention
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
        self.inner.trees.reach
    }

    /// Forgets an ended process and removes its log.
    pub fn forget(&self, id: Id) -> Result<(), ForgetError> {
        // Out of sight first: a start with its key must not attach to one whose log is going.
        let (process, keyed) = self.inner.processes().take_out(id)?;
        // Then written down: an engine that goes here leaves files that the next one removes.
        self.inner.journal.iter().for_each(|journal| journal.forgotten(id));
        if let Err(source) = process.remove_log() {
            // While a file is stuck the process stays, and can be tried again.
            self.inner.processes().put_back(process, keyed);
            return Err(ForgetError::Remove { id, source });
        }
        self.inner.readers.forget(id);
        let subject = Arc::new(Subject::new(process.spec()));
        self.inner.feed.post(subject, EventKind::Forgotten);
        process.tree().give_back_if_empty();
        Ok(())
    }
}

impl Inner {
    fn processes(&self) -> MutexGuard<'_, ProcessMap> {
        // Every change to the map is complete in itself, so a panic leaves it whole.
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_folder(&self) -> PathBuf {
        log_folder(&self.settings.state)
    }
}

/// Where the logs in this state folder are.
pub fn log_folder(state: &Path) -> PathBuf {
    state.join("logs")
}

impl Drop for Inner {
    /// Wakes the sweeper, which then finds no engine and goes.
    fn drop(&mut self) {
        self.ended.notify_one();
    }
}
