//! The life of a process, from launch to ending.
//!
//! One owner task per process has the child, its pipes and the log's writer; nobody else changes
//! anything. What it publishes is one immutable [`Snapshot`], so a caller that sees a process as
//! ended has all its output. The engine never prints, reads no configuration and knows no protocol.
//!
//! In the order of a life: `launch` (what to run, checked), `sandbox` (what it may do), `engine`
//! (the map of processes: start, list, retention, close, restart), `owner` (one task per process),
//! `process` (the handle, and what it shows). Beside them: `tree` and `stop` (descendants, and
//! ending them for sure), `journal` (what the next engine knows), `feed` and `counts` (what
//! happened, and how often).

mod clock;
mod counts;
mod engine;
mod feed;
mod id;
mod journal;
mod launch;
mod notes;
mod owner;
mod process;
mod sandbox;
mod settings;
mod stop;
mod tree;

pub use counts::{CauseKind, Counts, Distribution, Histogram, StatusKind};
pub use engine::spawner::{InProcess, SpawnFuture, Spawner};
pub use engine::{
    CapReached, Caps, CloseReport, Difference, Engine, Field, Filter, ForgetError, FromKeeper,
    JournalState, Page, PhaseKind, Phases, Refused, Restored, Retention, StartError, Started,
    Survivors, journal_file, log_folder, recorded_processes, set_aside_folders, stop_all, survived,
};
pub use feed::{Batch, Event, EventKind, Feed, Subject};
pub use id::{Id, IdTag};
pub use launch::environment::{Environment, EnvironmentProvider, ProviderError};
pub use launch::plan::{LaunchError, Part, SpawnError, Warning};
pub use launch::{
    BaseEnv, DrainRule, EnforcedBy, EnvEdit, Key, Launch, Limited, Limits, Name, NameUnique,
    OnDisconnect, OnQuota, OnTimeout, Program, Resource, ResourceError, ResourceRules, Resources,
    Session, Spec, Stdin, Streams, Timeouts, Touches,
};
pub use owner::holds::Hold;
pub use owner::owner_end::{Delivery, ResizeError, SignalError};
pub use owner::pump::Drained;
pub use owner::stdin::{StdinOpen, StdinState, WriteError, Written};
pub use process::clients::Connected;
pub use process::ending::{
    Cause, Closing, End, Ending, Holder, Holders, Kept, LostWhy, Status, Timeout, Times, Usage,
};
pub use process::keyboard::{Keyboard, KeyboardClient, KeyboardError, KeyboardHolder};
pub use process::log_source::LogSource;
pub use process::snapshot::{Phase, Snapshot};
pub use process::{LogReader, Process};
pub use sandbox::{
    Enforcement, EnforcementChoice, Missing, Needs, Network, Sandbox, SandboxError, StartupFiles,
    Workspace, confined,
};
pub use settings::{History, Settings};
pub use stop::{StopPolicy, StopProof, Verb};
pub use tree::orphans::OrphanReaper;
pub use tree::{InputKind, InputReader, InputState, PortState, Reach, ReachChoice, Survivor};

pub use lastbyte_sys::{Errno, Signal, pty::WindowSize};
