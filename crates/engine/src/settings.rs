//! The settings of an engine.

use std::path::PathBuf;
use std::sync::Arc;

use lastbyte_sys::spawn::Mechanism;

use crate::engine::{Caps, Retention};
use crate::id::IdTag;
use crate::launch::ResourceRules;
use crate::launch::environment::{Environment, EnvironmentProvider};
use crate::sandbox::EnforcementChoice;
use crate::tree::ReachChoice;

/// Settings of an engine; `Settings::new` has the defaults.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder for logs. Created if necessary, for this user only.
    pub state: PathBuf,
    /// The default working directory of commands, if it exists when they start. An absolute path.
    pub workdir: Option<PathBuf>,
    /// The base environment of commands.
    pub environment: Environment,
    /// Asked at each start for another base environment.
    pub provider: Option<Arc<dyn EnvironmentProvider>>,
    pub retention: Retention,
    /// What the next engine on the same state folder knows of this one's processes.
    pub history: History,
    /// For all logs together, in bytes. Above it, ended processes are forgotten, oldest first; then
    /// every running log is cut to 1 MiB of head and 1 MiB of tail.
    pub disk_quota: u64,
    /// How many threads create children; `None` for one per processor.
    pub spawners: Option<usize>,
    pub mechanism: Mechanism,
    /// How trees are reached when they are stopped.
    pub reach: ReachChoice,
    /// Folders hidden from confined commands, in addition to the state folder: those with the
    /// server's sockets and token.
    pub hidden: Vec<PathBuf>,
    /// Files that confined commands may not write, wherever they are: the server's settings.
    pub protected: Vec<PathBuf>,
    /// Home folders in which startup files are protected if a confined command can write there; `None`
    /// for those of this user.
    pub homes: Option<Vec<PathBuf>>,
    /// The folder that `XDG_CONFIG_HOME` names: protected like `.config` in a home.
    pub config_home: Option<PathBuf>,
    /// How sandbox policies are enforced.
    pub enforcement: EnforcementChoice,
    /// What commands may use.
    pub resources: ResourceRules,
    pub caps: Caps,
    /// What all ids of new processes have in common, if anything.
    pub id_tag: Option<IdTag>,
    /// The file that lists the folders confined commands could write, which later engines need.
    /// Engines may share it.
    pub sandbox_roots: PathBuf,
}

/// Whether processes are remembered after the engine is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// The engine starts with none, and does not touch existing files in the state folder.
    None,
    /// In a journal. The state folder belongs to this engine: it removes logs that the journal does
    /// not name.
    Journal,
}

impl Settings {
    pub fn new(state: impl Into<PathBuf>) -> Self {
        let state = state.into();
        Self {
            sandbox_roots: state.join("sandbox-roots"),
            state,
            workdir: None,
            environment: Environment::own(),
            provider: None,
            retention: Retention::default(),
            history: History::None,
            disk_quota: 4 << 30,
            spawners: None,
            mechanism: Mechanism::Clone3,
            reach: ReachChoice::Best,
            hidden: Vec::new(),
            protected: Vec::new(),
            homes: None,
            config_home: variable("XDG_CONFIG_HOME"),
            enforcement: EnforcementChoice::Best,
            resources: ResourceRules::default(),
            caps: Caps::default(),
            id_tag: None,
        }
    }

    pub(crate) fn spawners(&self) -> usize {
        let one_each = || std::thread::available_parallelism().map_or(2, usize::from);
        self.spawners.unwrap_or_else(one_each)
    }
}

/// `HOME`, and the home folder from the user database.
pub(crate) fn own_homes() -> Vec<PathBuf> {
    let listed = lastbyte_sys::user::home().filter(|home| home.is_absolute());
    let mut homes: Vec<PathBuf> = variable("HOME").into_iter().chain(listed).collect();
    homes.dedup();
    homes
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}
