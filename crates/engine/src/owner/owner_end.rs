//! What an owner has besides the process itself: the mailbox it answers and the snapshot it
//! publishes.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lastbyte_output::log::{Extent, ShortLog};
use lastbyte_sys::pty::WindowSize;
use lastbyte_sys::{Errno, Signal};
use tokio::sync::{mpsc, oneshot, watch};

use crate::feed::{EventKind, Reporter};
use crate::journal::Entry;
use crate::owner::stdin;
use crate::process::ending::{Ending, LostWhy, Timeout, Times};
use crate::process::snapshot::{Phase, Snapshot};
use crate::stop::{Escalation, Verb};

/// What can be asked of an owner; each but the last has a reply.
#[derive(Debug)]
pub(crate) enum Command {
    Signal {
        signal: Signal,
        reply: oneshot::Sender<Delivery>,
    },
    /// Boxed: a mailbox has room for 32 commands from the start, in every process.
    Write(Box<stdin::Write>),
    Resize {
        size: WindowSize,
        reply: oneshot::Sender<Result<(), ResizeError>>,
    },
    /// A stop begins; the answer says how to go about it.
    Stopping {
        verb: Verb,
        grace: Duration,
        reply: oneshot::Sender<StopTicket>,
    },
    /// The log is to keep only its ends.
    Squeeze,
}

/// Whom a signal reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The leader and its group.
    Group,
    /// So many that are left of the group.
    Survivors(usize),
    Nobody,
}

/// The owner is gone without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the process's owner went away")]
pub struct SignalError;

/// Why a terminal was not resized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ResizeError {
    #[error("the process has no terminal")]
    NoTerminal,
    #[error("the process has exited")]
    Exited,
    #[error("the size of a terminal must be greater than 0")]
    Zero,
    #[error("the terminal refused the size")]
    Refused(#[source] Errno),
}

/// How a stop goes on from here.
#[derive(Debug)]
pub(crate) struct StopTicket {
    pub(crate) escalation: Escalation,
    /// Another stop is under way: this one does not wait out a grace.
    pub(crate) hurry: bool,
}

/// Publishing and listening, for one process. Dropped before the ending it publishes that the
/// process is lost, so that nobody waits for ever.
#[derive(Debug)]
pub(crate) struct OwnerEnd {
    /// Unbounded: every message is a caller who waits for its reply (or the sweeper, which comes
    /// seldom), and the bytes of writes are counted by the stdin queue's permits.
    mailbox: mpsc::UnboundedReceiver<Command>,
    snapshot: watch::Sender<Snapshot>,
    /// Set once, after the snapshot with the ending: who waits for that alone wakes once.
    ending: watch::Sender<Option<Arc<Ending>>>,
    pub(crate) started: StartTime,
    /// `None` for a process that was never entered into the map: nobody hears of it.
    reporter: Option<Reporter>,
    /// Where the ending is written down, until it is.
    entry: Option<Entry>,
}

/// When it began, on both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartTime {
    pub(crate) wall: SystemTime,
    pub(crate) clock: tokio::time::Instant,
}

/// The caller's ends.
#[derive(Debug, Clone)]
pub(crate) struct OwnerHandle {
    pub(crate) mailbox: mpsc::UnboundedSender<Command>,
    pub(crate) snapshot: watch::Receiver<Snapshot>,
    pub(crate) ending: watch::Receiver<Option<Arc<Ending>>>,
}

impl OwnerHandle {
    /// Of a process that has nobody who answers: all there is to know of it is known.
    pub(crate) fn of_ended(
        ending: Ending,
        extent: Extent,
        timed_out_at: Option<SystemTime>,
    ) -> Self {
        let (mailbox, _) = mpsc::unbounded_channel();
        let ending = Arc::new(ending);
        let phase = Phase::Ended(Arc::clone(&ending));
        let (_, snapshot) =
            watch::channel(Snapshot { phase, extent, log_open: false, timed_out_at });
        let (_, ending) = watch::channel(Some(ending));
        Self { mailbox, snapshot, ending }
    }
}

impl OwnerEnd {
    pub(crate) fn new(started: StartTime) -> (Self, OwnerHandle) {
        let (sender, mailbox) = mpsc::unbounded_channel();
        let (snapshot, snapshots) = watch::channel(Snapshot::first());
        let (ending, endings) = watch::channel(None);
        let owner = OwnerHandle { mailbox: sender, snapshot: snapshots, ending: endings };
        (Self { mailbox, snapshot, ending, started, reporter: None, entry: None }, owner)
    }

    /// From now on it is told what happens to the process.
    pub(crate) fn report_to(&mut self, reporter: Reporter) {
        self.reporter = Some(reporter);
    }

    /// The ending will be written down here.
    pub(crate) fn write_into(&mut self, entry: Option<Entry>) {
        self.entry = entry;
    }

    pub(crate) fn report(&self, kind: EventKind) {
        self.reporter.iter().for_each(|reporter| reporter.report(kind.clone()));
    }

    /// Where an extent is published, and under that lock: what is seen is counted.
    fn count(&self, before: &Extent, after: &Extent) {
        self.reporter.iter().for_each(|reporter| reporter.count_output(before, after));
    }

    /// The next command; waits for ever once nobody is left to send one. Cancel-safe.
    pub(crate) async fn command(&mut self) -> Command {
        match self.mailbox.recv().await {
            Some(command) => command,
            None => pending().await,
        }
    }

    /// Publishes how far the log goes. Called after each append, never before.
    pub(crate) fn publish_extent(&self, extent: Extent) {
        let mut first = false;
        self.snapshot.send_modify(|snapshot| {
            first = snapshot.extent.len == 0 && extent.len > 0;
            self.count(&snapshot.extent, &extent);
            snapshot.extent = extent;
        });
        if first {
            self.report(EventKind::FirstOutput);
        }
    }

    /// Its time is over; what becomes of it is for the launch to say.
    pub(crate) fn publish_timed_out(&self, which: Timeout) {
        let at = SystemTime::now();
        self.entry.iter().for_each(|entry| entry.timed_out(at));
        self.snapshot.send_modify(|snapshot| snapshot.timed_out_at = Some(at));
        self.report(EventKind::TimedOut { which });
    }

    /// From the instant of the leader's exit, for everybody at once.
    pub(crate) fn publish_draining(&self) {
        self.snapshot.send_modify(|snapshot| snapshot.phase = Phase::Draining);
    }

    /// Publishes phase and final length as one value, then signals callers that wait only for the
    /// ending. Its record contains the whole log if that is short.
    pub(crate) fn publish_ending(
        &mut self,
        ending: Ending,
        extent: Extent,
        log_open: bool,
        short: Option<&ShortLog>,
    ) {
        if let Some(entry) = self.entry.take() {
            entry.ended(&ending, &extent, short);
        }
        let ending = Arc::new(ending);
        let phase = Phase::Ended(Arc::clone(&ending));
        self.snapshot.send_modify(|snapshot| {
            self.count(&snapshot.extent, &extent);
            let timed_out_at = snapshot.timed_out_at;
            *snapshot = Snapshot { phase, extent, log_open, timed_out_at };
            // Under the lock of the snapshot: whoever sees the event and looks sees the ending, and
            // nobody can forget the process, and tell of that, before its ending is told of.
            self.reporter.iter().for_each(|reporter| reporter.report_ending(&ending));
        });
        self.ending.send_replace(Some(ending));
    }

    /// No late output can come any more.
    pub(crate) fn publish_closed(&self) {
        self.snapshot.send_modify(|snapshot| snapshot.log_open = false);
    }

    fn publish_lost(&mut self) {
        let now = SystemTime::now();
        let times = Times {
            started: self.started.wall,
            exited: now,
            ended: now,
            ran: self.started.clock.elapsed(),
            drained: Duration::ZERO,
        };
        let extent = self.snapshot.borrow().extent.clone();
        let ending = Ending::lost(LostWhy::OwnerGone, &extent, times);
        self.publish_ending(ending, extent, false, None);
    }
}

impl Drop for OwnerEnd {
    fn drop(&mut self) {
        if self.ending.borrow().is_none() {
            self.publish_lost();
        } else {
            self.publish_closed();
        }
    }
}
