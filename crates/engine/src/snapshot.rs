//! What a process is at one instant: phase and output length are one value.

use std::sync::Arc;
use std::time::SystemTime;

use lastbyte_output::log::Extent;

use crate::ending::Ending;

/// Published by the owner after each change; never changed itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub phase: Phase,
    /// How far the log goes and what of it is gone.
    pub extent: Extent,
    /// Whether more can come: after the ending, late output.
    pub log_open: bool,
    /// When its time was over, if it was.
    pub timed_out_at: Option<SystemTime>,
}

/// Where in its life a process is.
#[derive(Debug, Clone, PartialEq)]
pub enum Phase {
    Running,
    /// The leader has exited; its last bytes are being stored.
    Draining,
    /// Complete: the ending has the length of the output.
    Ended(Arc<Ending>),
}

impl Snapshot {
    /// That of a process that has just been started.
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

    /// How far the output proper goes: for ever the same once there is an ending.
    pub fn output_len(&self) -> u64 {
        self.ending().map_or(self.extent.len, |ending| ending.final_len)
    }
}
