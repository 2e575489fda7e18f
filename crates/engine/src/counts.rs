//! What an engine has counted since it was made, of all its processes together.
//!
//! Each number is raised where the thing happens: starts, endings and what is forgotten as the feed
//! tells of them, bytes as an extent is published, spawns where the spawner answers. Relaxed atomics:
//! counting orders nothing and waits for nobody.

mod histogram;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use lastbyte_output::log::Extent;

use crate::ending::{Cause, Ending, Status};
use crate::engine::Refused;
use crate::feed::EventKind;

pub use histogram::{Distribution, Histogram};

// The last variant is the last of its list: no number has no place.
const _: () = {
    assert!(Refused::Failed as usize + 1 == Refused::ALL.len());
    assert!(StatusIs::Lost as usize + 1 == StatusIs::ALL.len());
    assert!(CauseIs::Stopped as usize + 1 == CauseIs::ALL.len());
};

/// Only ever goes up; a new engine begins at 0.
#[derive(Debug, Default)]
pub struct Counts {
    starts: AtomicU64,
    refused: [AtomicU64; Refused::ALL.len()],
    endings: [[AtomicU64; CauseIs::ALL.len()]; StatusIs::ALL.len()],
    forgotten: AtomicU64,
    stored_bytes: AtomicU64,
    dropped_bytes: AtomicU64,
    pub(crate) spawns: Histogram,
}

/// A status without what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusIs {
    Exited,
    Signalled,
    Lost,
}

/// A cause without what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CauseIs {
    Own,
    TimedOut,
    Stopped,
}

impl Counts {
    /// Processes that were started and could be found by their id.
    pub fn starts(&self) -> u64 {
        self.starts.load(Relaxed)
    }

    /// Starts that came to nothing, for this reason. Callers that shared one by its key count once.
    pub fn refused(&self, why: Refused) -> u64 {
        self.refused[why as usize].load(Relaxed)
    }

    /// Endings that were published. A process of an earlier engine has none here.
    pub fn endings(&self, status: StatusIs, cause: CauseIs) -> u64 {
        self.endings[status as usize][cause as usize].load(Relaxed)
    }

    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Relaxed)
    }

    /// Bytes of output that were taken into logs, dropped ones included.
    pub fn stored_bytes(&self) -> u64 {
        self.stored_bytes.load(Relaxed)
    }

    /// Those of them that were dropped to stay within a quota, or that a failing disk did not take.
    /// What goes with a process that is forgotten is not among them.
    pub fn dropped_bytes(&self) -> u64 {
        self.dropped_bytes.load(Relaxed)
    }

    /// From a request to a spawner to a command that runs, of those that came to run.
    pub fn spawns(&self) -> &Histogram {
        &self.spawns
    }

    pub(crate) fn count_refused(&self, why: Refused) {
        self.refused[why as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn count_event(&self, kind: &EventKind) {
        match kind {
            EventKind::Started => _ = self.starts.fetch_add(1, Relaxed),
            EventKind::Ended(ending) => self.count_ending(ending),
            EventKind::Forgotten => _ = self.forgotten.fetch_add(1, Relaxed),
            EventKind::FirstOutput
            | EventKind::TimedOut { .. }
            | EventKind::WorkspaceTouched(_) => {}
        }
    }

    fn count_ending(&self, ending: &Ending) {
        let (status, cause) = (StatusIs::of(&ending.status), CauseIs::of(&ending.cause));
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

impl StatusIs {
    pub const ALL: [Self; 3] = [Self::Exited, Self::Signalled, Self::Lost];

    fn of(status: &Status) -> Self {
        match status {
            Status::Exited(_) => Self::Exited,
            Status::Signalled { .. } => Self::Signalled,
            Status::Lost(_) => Self::Lost,
        }
    }
}

impl CauseIs {
    pub const ALL: [Self; 3] = [Self::Own, Self::TimedOut, Self::Stopped];

    fn of(cause: &Cause) -> Self {
        match cause {
            Cause::Own => Self::Own,
            Cause::TimedOut { .. } => Self::TimedOut,
            Cause::Stopped { .. } => Self::Stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number is found by its place in the list, so the list has every variant, in their order.
    #[test]
    fn the_lists_are_whole_and_in_order() {
        assert!(Refused::ALL.iter().enumerate().all(|(place, why)| *why as usize == place));
        assert!(StatusIs::ALL.iter().enumerate().all(|(place, status)| *status as usize == place));
        assert!(CauseIs::ALL.iter().enumerate().all(|(place, cause)| *cause as usize == place));
    }
}
