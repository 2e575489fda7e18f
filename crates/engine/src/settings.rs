//! What an engine is told when it is made.

use std::path::PathBuf;
use std::sync::Arc;

use lastbyte_sys::spawn::Mechanism;

use crate::engine::Retention;
use crate::environment::{Environment, EnvironmentProvider};
use crate::sandbox::EnforcementChoice;
use crate::tree::ReachChoice;

/// Settings of an engine; `Settings::new` has the defaults.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder that logs are kept under. It is made, for this user alone, if need be.
    pub state: PathBuf,
    /// The directory of commands that name none, if it exists when they start. An absolute path.
    pub workdir: Option<PathBuf>,
    /// The base environment of commands.
    pub environment: Environment,
    /// Asked at each start for another base environment.
    pub provider: Option<Arc<dyn EnvironmentProvider>>,
    pub retention: Retention,
    /// What the next engine on the same state folder knows of this one's processes.
    pub history: History,
    /// Of all logs together, in bytes. Past it ended processes are forgotten, oldest first, then
    /// every running log falls to 1 MiB of head and 1 MiB of tail.
    pub disk_quota: u64,
    /// How many threads make children.
    pub spawners: usize,
    pub mechanism: Mechanism,
    /// How trees are reached when they are stopped.
    pub reach: ReachChoice,
    /// Folders that confined commands are not to see, beside the state folder: where the server
    /// has its sockets and its token.
    pub hidden: Vec<PathBuf>,
    /// How sandbox policies are enforced.
    pub enforcement: EnforcementChoice,
}

/// Whether processes are remembered beyond the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// The engine begins with none, and leaves what lies in the state folder alone.
    None,
    /// In a journal. The state folder belongs to this engine: logs that the journal does not name
    /// are removed from it.
    Journal,
}

impl Settings {
    pub fn new(state: impl Into<PathBuf>) -> Self {
        Self {
            state: state.into(),
            workdir: None,
            environment: Environment::own(),
            provider: None,
            retention: Retention::default(),
            history: History::None,
            disk_quota: 4 << 30,
            spawners: std::thread::available_parallelism().map_or(2, usize::from),
            mechanism: Mechanism::Clone3,
            reach: ReachChoice::Best,
            hidden: Vec::new(),
            enforcement: EnforcementChoice::Best,
        }
    }
}
