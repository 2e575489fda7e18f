//! The life of a process, from launch to ending.
//!
//! One owner task per process has the child, its pipes and the log's writer; nobody else changes
//! anything. What it publishes is one immutable [`Snapshot`], so whoever sees a process as ended
//! has its last byte. The engine never prints, reads no configuration and knows no protocol.

mod clock;
mod counts;
mod desk;
mod directory;
mod disk;
mod ending;
mod engine;
mod environment;
mod feed;
mod id;
mod journal;
mod launch;
mod log_source;
mod orphans;
mod owner;
mod pins;
mod plan;
mod process;
mod pump;
mod sandbox;
mod settings;
mod snapshot;
mod spawner;
mod stdin;
mod stop;
mod tree;
mod under_way;

pub use counts::{CauseIs, Counts, Distribution, Histogram, StatusIs};
pub use desk::{Delivery, ResizeError, SignalError};
pub use ending::{
    Cause, Closing, Ending, Holder, Holders, Kept, LostWhy, Status, Timeout, Times, Usage,
};
pub use engine::{
    CloseReport, Engine, Filter, ForgetError, Page, PhaseIs, Phases, Refused, Restored, Retention,
    StartError, Started, Survivors, survived,
};
pub use environment::{Environment, EnvironmentProvider, ProviderError};
pub use feed::{Batch, Event, EventAbout, EventKind, Feed};
pub use id::Id;
pub use launch::{
    DrainRule, EnvEdit, Key, Launch, OnQuota, OnTimeout, Program, Session, Stdin, Streams,
    Timeouts, Touches,
};
pub use log_source::LogSource;
pub use orphans::OrphanReaper;
pub use pins::Pin;
pub use plan::{LaunchError, Part, SpawnError, Warning};
pub use process::{About, LogReader, Process};
pub use pump::Drained;
pub use sandbox::{
    Enforcement, EnforcementChoice, Missing, Needs, Network, Sandbox, SandboxError, Workspace,
    confined,
};
pub use settings::{History, Settings};
pub use snapshot::{Phase, Snapshot};
pub use spawner::{InProcess, SpawnFuture, Spawner};
pub use stdin::{StdinOpen, StdinState, WriteError, Written};
pub use stop::{StopPolicy, StopProof, Verb};
pub use tree::{PortLook, Reach, ReachChoice, Survivor};

pub use lastbyte_sys::{Errno, Signal, pty::WindowSize};
