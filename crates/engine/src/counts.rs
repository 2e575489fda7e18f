//! Counters of an engine since it was created, over all its processes.
//!
//! Each counter is updated where the thing happens: starts, endings and forgotten processes when
//! the feed posts them, bytes when an extent is published, spawns when the spawner answers. Relaxed
//! atomics: counters order nothing and wait for nothing.

mod histogram;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lastbyte_output::log::Extent;

use crate::engine::Refused;
use crate::feed::EventKind;
use crate::process::ending::{Cause, Ending, Status};

pub use histogram::{Distribution, Histogram};

// The last variant is the last in its list, so every variant has a counter.
const _: () = {
    assert!(Refused::Failed as usize + 1 == Refused::ALL.len());
    assert!(StatusKind::Lost as usize + 1 == StatusKind::ALL.len());
    assert!(CauseKind::Unknown as usize + 1 == CauseKind::ALL.len());
};

/// Counters only increase. A new engine starts at 0.
#[derive(Debug, Default)]
pub struct Counts {
    starts: AtomicU64,
    refused: [AtomicU64; Refused::ALL.len()],
    endings: [[AtomicU64; CauseKind::ALL.len()]; StatusKind::ALL.len()],
    forgotten: AtomicU64,
    stored_bytes: AtomicU64,
    dropped_bytes: AtomicU64,
    pub(crate) spawns: Histogram,
}

/// A status without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusKind {
    Exited,
    Signalled,
    Lost,
}

/// A cause without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CauseKind {
    Own,
    TimedOut,
    Stopped,
    Limit,
    /// Nobody saw the end.
    Unknown,
}

impl Counts {
    /// Processes that were started and could be found by their id.
    pub fn starts(&self) -> u64 {
        self.starts.load(Relaxed)
    }

    /// Starts that failed for this reason. Callers that shared a start by its key count once.
    pub fn refused(&self, why: Refused) -> u64 {
        self.refused[why as usize].load(Relaxed)
    }

    /// Published endings. A process of an earlier engine is not counted here.
    pub fn endings(&self, status: StatusKind, cause: CauseKind) -> u64 {
        self.endings[status as usize][cause as usize].load(Relaxed)
    }

    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Relaxed)
    }

    /// Bytes of output taken into logs, including dropped ones.
    pub fn stored_bytes(&self) -> u64 {
        self.stored_bytes.load(Relaxed)
    }

    /// Those of them that were dropped to stay within a quota, or that a failing disk did not
    /// accept. Excludes what goes with a forgotten process.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes.load(Relaxed)
    }

    /// The time from a request to a spawner until the command runs, for successful spawns.
    pub fn spawns(&self) -> &Histogram {
        &self.spawns
    }

    pub(crate) fn count_refused(&self, why: Refused) {
        self.refused[why as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn count_event(&self, kind: &EventKind) {
        match kind {
            EventKind::Started(_) => _ = self.starts.fetch_add(1, Relaxed),
            EventKind::Ended(_, ending) => self.count_ending(ending),
            EventKind::Forgotten => _ = self.forgotten.fetch_add(1, Relaxed),
            EventKind::FirstOutput
            | EventKind::TimedOut { .. }
            | EventKind::WorkspaceTouched(_) => {}
        }
    }

    fn count_ending(&self, ending: &Ending) {
        let (status, cause) = (StatusKind::from(&ending.status), CauseKind::from(&ending.cause));
        self.endings[status as usize][cause as usize].fetch_add(1, Relaxed);
    }

    /// The log of a process went from one extent to the next.
    pub(crate) fn count_output(&self, before: &Extent, after: &Extent) {
        self.stored_bytes.fetch_add(after.len.saturating_sub(before.len), Relaxed);
        let dropped = after.dropped.bytes().saturating_sub(before.dropped.bytes());
        if dropped > 0 {
            self.dropped_bytes.fetch_add(dropped, Relaxed);
        }
    }
}

impl StatusKind {
    pub const ALL: [Self; 3] = [Self::Exited, Self::Signalled, Self::Lost];
}

impl From<&Status> for StatusKind {
    fn from(status: &Status) -> Self {
        match status {
            Status::Exited(_) => Self::Exited,
            Status::Signalled { .. } => Self::Signalled,
            Status::Lost(_) => Self::Lost,
        }
    }
}

impl CauseKind {
    pub const ALL: [Self; 5] =
        [Self::Own, Self::TimedOut, Self::Stopped, Self::Limit, Self::Unknown];
}

impl From<&Cause> for CauseKind {
    fn from(cause: &Cause) -> Self {
        match cause {
            Cause::Own => Self::Own,
            Cause::TimedOut { .. } => Self::TimedOut,
            Cause::Stopped { .. } => Self::Stopped,
            Cause::Limit { .. } => Self::Limit,
            Cause::Unknown => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A counter is found by its place in the list, so the list must have every variant in order.
    #[test]
    fn the_lists_are_whole_and_in_order() {
        assert!(Refused::ALL.iter().enumerate().all(|(place, why)| *why as usize == place));
        assert!(
            StatusKind::ALL.iter().enumerate().all(|(place, status)| *status as usize == place)
        );
        assert!(CauseKind::ALL.iter().enumerate().all(|(place, cause)| *cause as usize == place));
    }
}
