//! How a process ended: four independent facts, because they combine.
//!
//! An ending is made from a finished drain. Only the pump makes a [`Drained`], so no code can say
//! "ended" before the last byte is stored:
//!
//! ```compile_fail
//! use lastbyte_engine::{Cause, Drained, Ending, Status, Times, Usage};
//! fn end_early(times: Times) -> Ending {
//!     let drained = Drained { final_len: 0 }; // private: only a pump makes one
//!     Ending::new(Status::Exited(0), Cause::Own, drained, times)
//! }
//! ```
//!
//! Other crates cannot construct an ending field by field either, or change fields of one:
//!
//! ```compile_fail,E0639
//! use lastbyte_engine::{Cause, Closing, Ending, Kept, Status, Times};
//! fn end_early(times: Times) -> Ending {
//!     let (status, cause) = (Status::Exited(0), Cause::Own);
//!     let (closing, kept) = (Closing::Eof, Kept::Whole);
//!     Ending { status, cause, closing, kept, final_len: 0, masked: 0, times, usage: None }
//! }
//! ```
//!
//! ```compile_fail,E0639
//! use lastbyte_engine::Ending;
//! fn end_early(of_another: Ending) -> Ending {
//!     Ending { final_len: 0, ..of_another }
//! }
//! ```

use std::time::{Duration, SystemTime};

use lastbyte_output::log::{Dropped, Failed};
use lastbyte_sys::Signal;

use crate::launch::Resource;
use crate::owner::pump::Drained;
use crate::stop::Verb;

/// How a process ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Ending {
    pub status: Status,
    pub cause: Cause,
    pub closing: Closing,
    pub kept: Kept,
    /// The length of the output; what follows in the log is late output. If nobody saw the end, the
    /// length of what was stored.
    pub final_len: u64,
    /// How many secrets were masked in it.
    pub masked: u64,
    pub times: Times,
    /// `None` if the status was lost or came from the pidfd after another part of the program
    /// reaped the leader.
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
    /// Unknown, and never guessed.
    Lost(LostWhy),
}

/// Why a status is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LostWhy {
    #[error("another part of the program took the exit status")]
    TakenByOthers,
    #[error("the task that owned the process ended before it")]
    OwnerGone,
    #[error("the server ended before the process did")]
    ServerGone,
}

/// What caused the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Nobody saw the end.
    Unknown,
    /// The command itself, or something outside the server.
    Own,
    TimedOut {
        which: Timeout,
        escalated: bool,
    },
    /// `escalated` if the stop signal was not enough and KILL followed.
    Stopped {
        verb: Verb,
        escalated: bool,
    },
    /// The tree passed this limit. `escalated` as above, if the server stopped it.
    Limit {
        which: Resource,
        escalated: bool,
    },
}

/// Which of the two timers expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timeout {
    Wall,
    Idle,
}

/// How the output ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closing {
    /// Nobody saw the end.
    Unknown,
    /// Every writer closed it.
    Eof,
    /// A process of the tree still holds it open; what it writes is late output.
    Held(Holders),
}

/// Which processes hold the output open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holders {
    Known(Vec<Holder>),
    /// The search took too long or found none.
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
    /// Nobody saw the end, so there may have been more output than was stored.
    Unknown,
    Whole,
    /// These ranges were dropped to stay within the quota.
    Dropped(Dropped),
    /// The disk failed from `failed.at` on; the newest bytes are in memory.
    Failed {
        failed: Failed,
        dropped: Dropped,
    },
}

/// When it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    pub started: SystemTime,
    pub end: End,
}

/// When it ended, if somebody saw that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Durations come from a monotonic clock.
    Seen {
        exited: SystemTime,
        ended: SystemTime,
        /// From the start to the leader's exit.
        ran: Duration,
        /// From the leader's exit to the ending.
        drained: Duration,
    },
    /// Nobody saw it: `found` is when that was noticed, this long after the start.
    Unseen { found: SystemTime, after: Duration },
}

/// Resources used by the leader and the children it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub user: Duration,
    pub system: Duration,
    /// In bytes; only if it is known to be the command's own.
    pub peak_memory: Option<u64>,
    /// The kernel killed a process of the tree because memory ran out. `false` also where it does not
    /// tell.
    pub oom_killed: bool,
    /// The kernel refused to start a process of the tree, because of its limit of `pids`.
    pub forks_refused: bool,
}

impl Ending {
    pub fn new(status: Status, cause: Cause, drained: Drained, times: Times) -> Self {
        let final_len = drained.final_len();
        let (closing, kept, masked) = drained.into_parts();
        Self { status, cause, closing, kept, final_len, masked, times, usage: None }
    }

    /// The ending of a process whose owner is gone: only what was stored is known.
    pub(crate) fn lost(why: LostWhy, final_len: u64, times: Times) -> Self {
        Self {
            status: Status::Lost(why),
            cause: Cause::Unknown,
            closing: Closing::Unknown,
            kept: Kept::Unknown,
            final_len,
            masked: 0,
            times,
            usage: None,
        }
    }

    /// Whether somebody saw the end. If not, the process may still run.
    pub fn was_seen(&self) -> bool {
        matches!(self.times.end, End::Seen { .. })
    }

    /// Whether it did not succeed: another exit code than 0, a signal, a timeout, or nobody knows.
    /// A process that was stopped has done what was asked of it.
    pub fn failed(&self) -> bool {
        match self.cause {
            Cause::Stopped { .. } => false,
            Cause::TimedOut { .. } | Cause::Limit { .. } => true,
            Cause::Own | Cause::Unknown => self.status != Status::Exited(0),
        }
    }

    pub(crate) fn with_usage(mut self, usage: Option<Usage>) -> Self {
        self.usage = usage;
        self
    }
}

impl Times {
    /// When the ending was published, or when it was noticed that nobody saw it.
    pub fn known_at(&self) -> SystemTime {
        match self.end {
            End::Seen { ended, .. } => ended,
            End::Unseen { found, .. } => found,
        }
    }

    /// From the start until then.
    pub fn known_after(&self) -> Duration {
        match self.end {
            End::Seen { ran, drained, .. } => ran + drained,
            End::Unseen { after, .. } => after,
        }
    }

    /// From the start to the leader's exit, if somebody saw that.
    pub fn ran(&self) -> Option<Duration> {
        match self.end {
            End::Seen { ran, .. } => Some(ran),
            End::Unseen { .. } => None,
        }
    }
}

impl Kept {
    pub(crate) fn new(dropped: &Dropped, failed: Option<Failed>) -> Self {
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
