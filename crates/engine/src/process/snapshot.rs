//! The state of a process at one moment: phase and output length in one value.

use std::sync::Arc;
use std::time::SystemTime;

use lastbyte_output::log::Extent;

use crate::process::ending::Ending;

/// Published by the owner after each change; immutable.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub phase: Phase,
    /// The length of the log, and which parts are dropped.
    pub extent: Extent,
    /// Whether more output can come; after the ending, that is late output.
    pub log_open: bool,
    /// When it timed out, if it did.
    pub timed_out_at: Option<SystemTime>,
}

/// The phase of a process's life.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    Running,
    /// The leader has exited; its last bytes are being stored.
    Draining,
    /// Complete: the ending has the length of the output. Nothing more can be told of a process whose
    /// end nobody saw, so it is in this phase as well.
    Ended(Arc<Ending>),
}

impl Snapshot {
    /// The snapshot of a process that has just started.
    pub(crate) fn first() -> Self {
        Self {
            phase: Phase::Running,
            extent: Extent::default(),
            log_open: true,
            timed_out_at: None,
        }
    }

    pub fn ending(&self) -> Option<&Arc<Ending>> {
        match &self.phase {
            Phase::Ended(ending) => Some(ending),
            Phase::Running | Phase::Draining => None,
        }
    }

    /// The length of the output without late output; constant once there is an ending.
    pub fn output_len(&self) -> u64 {
        self.ending().map_or(self.extent.len, |ending| ending.final_len)
    }
}
