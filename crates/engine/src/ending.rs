//! The record of how it went: four independent facts, because they combine.
//!
//! An ending is made of a finished drain. Only the pump makes a [`Drained`], so no code can say
//! "ended" before the last byte is stored:
//!
//! ```compile_fail
//! use lastbyte_engine::{Cause, Drained, Ending, Status, Times, Usage};
//! fn end_early(times: Times) -> Ending {
//!     let drained = Drained { final_len: 0 }; // private: only a pump makes one
//!     Ending::new(Status::Exited(0), Cause::Own, drained, times)
//! }
//! ```

use std::time::{Duration, SystemTime};

use lastbyte_output::log::{Dropped, Extent, Failed};
use lastbyte_sys::Signal;

use crate::pump::Drained;
use crate::stop::Verb;

/// How a process ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    pub status: Status,
    pub cause: Cause,
    pub closing: Closing,
    pub kept: Kept,
    /// The length of the output proper; what follows in the log is late output.
    pub final_len: u64,
    pub times: Times,
    /// `None` where the status was lost or came from a second source.
    pub usage: Option<Usage>,
}

/// The leader's own status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Exited(i32),
    Signalled {
        signal: Signal,
        core_dumped: bool,
    },
    /// Not known, and never guessed.
    Lost(LostWhy),
}

/// Why a status is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LostWhy {
    #[error("another part of the program took the exit status")]
    TakenByOthers,
    #[error("the task that owned the process ended before it")]
    OwnerGone,
    #[error("the server ended before the process did")]
    ServerGone,
}

/// Whose doing the end was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its own, or that of somebody outside.
    Own,
    TimedOut {
        which: Timeout,
        escalated: bool,
    },
    /// `escalated` when the stop signal did not do and KILL followed.
    Stopped {
        verb: Verb,
        escalated: bool,
    },
}

/// Which of the two clocks ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    Wall,
    Idle,
}

/// How the output came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closing {
    /// Every writer closed it.
    Eof,
    /// Somebody of the tree still holds it open; what they write is late output.
    Held(Holders),
}

/// Who holds the output open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holders {
    Known(Vec<Holder>),
    /// The look took too long or found nobody.
    Unknown,
}

/// A process that holds the output open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub pid: i32,
    pub name: String,
}

/// Whether every byte of the output can still be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    Whole,
    /// These ranges were dropped to stay within the quota.
    Dropped(Dropped),
    /// The disk did not take it from `failed.at` on; the newest bytes are in memory.
    Failed {
        failed: Failed,
        dropped: Dropped,
    },
}

/// When it was; durations are of a clock that is never set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    pub started: SystemTime,
    pub exited: SystemTime,
    pub ended: SystemTime,
    /// From the start to the leader's exit.
    pub ran: Duration,
    /// From the leader's exit to the ending.
    pub drained: Duration,
}

/// What the leader and the children it waited for have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub user: Duration,
    pub system: Duration,
    /// In bytes; only where it is known to be the command's own.
    pub peak_memory: Option<u64>,
}

impl Ending {
    pub fn new(status: Status, cause: Cause, drained: Drained, times: Times) -> Self {
        let final_len = drained.final_len();
        let (closing, kept) = drained.into_parts();
        Self { status, cause, closing, kept, final_len, times, usage: None }
    }

    /// The ending of a process whose owner is gone: nothing is known but what was stored.
    pub(crate) fn lost(why: LostWhy, extent: &Extent, times: Times) -> Self {
        Self {
            status: Status::Lost(why),
            cause: Cause::Own,
            closing: Closing::Held(Holders::Unknown),
            kept: Kept::of(&extent.dropped, None),
            final_len: extent.len,
            times,
            usage: None,
        }
    }

    pub(crate) fn with_usage(mut self, usage: Option<Usage>) -> Self {
        self.usage = usage;
        self
    }
}

impl Kept {
    pub(crate) fn of(dropped: &Dropped, failed: Option<Failed>) -> Self {
        match failed {
            Some(failed) => Self::Failed { failed, dropped: dropped.clone() },
            None if dropped.is_empty() => Self::Whole,
            None => Self::Dropped(dropped.clone()),
        }
    }
}

impl From<lastbyte_sys::Status> for Status {
    fn from(status: lastbyte_sys::Status) -> Self {
        match status {
            lastbyte_sys::Status::Exited(code) => Self::Exited(code),
            lastbyte_sys::Status::Signalled { signal, core_dumped } => {
                Self::Signalled { signal, core_dumped }
            }
        }
    }
}
