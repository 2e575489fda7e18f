//! What an owner has besides the process itself: the mailbox it answers and the snapshot it
//! publishes.

use std::future::pending;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use lastbyte_output::log::{Extent, ShortLog};
use lastbyte_sys::pty::WindowSize;
use lastbyte_sys::{Errno, Signal};
use tokio::sync::{mpsc, oneshot, watch};

use crate::feed::{EventKind, Reporter};
use crate::journal::Entry;
use crate::owner::stdin;
use crate::process::ending::{End, Ending, LostWhy, Timeout, Times};
use crate::process::snapshot::{Phase, Snapshot};
use crate::stop::{Escalation, StopPolicy, Verb};
use crate::tree::InputEnd;

/// A request to an owner; all but the last two have a reply.
#[derive(Debug)]
pub(crate) enum Command {
    Signal {
        signal: Signal,
        reply: oneshot::Sender<Delivery>,
    },
    /// Boxed: a mailbox has space for 32 commands from the start, in every process.
    Write(Box<stdin::Write>),
    Resize {
        size: WindowSize,
        reply: oneshot::Sender<Result<(), ResizeError>>,
    },
    /// A stop begins; the reply says how to continue.
    Stopping {
        verb: Verb,
        policy: StopPolicy,
        reply: oneshot::Sender<StopTicket>,
    },
    /// Where the command's input comes from; `None` if it has none.
    Input {
        reply: oneshot::Sender<Option<InputEnd>>,
    },
    /// Switch secret input on or off.
    SecretInput {
        on: bool,
        reply: oneshot::Sender<Result<(), Errno>>,
    },
    /// Leave a process behind that reads and discards late output when this program has ended.
    LeaveReader {
        reply: oneshot::Sender<io::Result<()>>,
    },
    /// Type the end of input again, if it was typed before.
    TypeEnd,
    /// Keep only head and tail of the log.
    Squeeze,
}

/// Which processes a signal reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The leader and its group.
    Group,
    /// This many survivors of the group.
    Survivors(usize),
    Nobody,
}

/// The owner is gone and did not reply.
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
    #[error("another client has the keyboard")]
    KeyboardTaken,
    #[error("the size of a terminal must be greater than 0")]
    Zero,
    #[error("the terminal refused the size")]
    Refused(#[source] Errno),
}

/// How a stop continues.
#[derive(Debug)]
pub(crate) struct StopTicket {
    pub(crate) escalation: Escalation,
    /// Another stop is in progress: this one has no grace.
    pub(crate) hurry: bool,
}

/// The owner's ends of the channels of one process. If it is dropped before the ending, it publishes
/// that the process is lost, so that nobody waits forever.
#[derive(Debug)]
pub(crate) struct OwnerEnd {
    /// Unbounded: every message has a caller that waits for its reply (or is from the sweeper, which
    /// sends few), and the stdin queue's permits limit the bytes of writes.
    mailbox: mpsc::UnboundedReceiver<Command>,
    snapshot: watch::Sender<Snapshot>,
    /// Set once, after the snapshot with the ending: a task that waits only for it wakes once.
    ending: watch::Sender<Option<Arc<Ending>>>,
    pub(crate) started: StartTime,
    /// `None` before the process is in the map: no events are reported.
    reporter: Option<Reporter>,
    /// The journal entry, until the ending is written.
    entry: Option<Entry>,
}

/// When the process started, on both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartTime {
    pub(crate) wall: SystemTime,
    pub(crate) clock: tokio::time::Instant,
}

/// The callers' ends of the channels.
#[derive(Debug, Clone)]
pub(crate) struct OwnerHandle {
    pub(crate) mailbox: mpsc::UnboundedSender<Command>,
    pub(crate) snapshot: watch::Receiver<Snapshot>,
    pub(crate) ending: watch::Receiver<Option<Arc<Ending>>>,
}

impl OwnerHandle {
    /// For an ended process that has no owner.
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
    /// Of a process that is now as the snapshot says.
    pub(crate) fn new(started: StartTime, snapshot: Snapshot) -> (Self, OwnerHandle) {
        let (sender, mailbox) = mpsc::unbounded_channel();
        let ending = snapshot.ending().cloned();
        let (snapshot, snapshots) = watch::channel(snapshot);
        let (ending, endings) = watch::channel(ending);
        let owner = OwnerHandle { mailbox: sender, snapshot: snapshots, ending: endings };
        (Self { mailbox, snapshot, ending, started, reporter: None, entry: None }, owner)
    }

    /// Reports the events of the process from now on.
    pub(crate) fn report_to(&mut self, reporter: Reporter) {
        self.reporter = Some(reporter);
    }

    /// Sets the journal entry for the ending.
    pub(crate) fn write_into(&mut self, entry: Option<Entry>) {
        self.entry = entry;
    }

    pub(crate) fn report(&self, kind: EventKind) {
        self.reporter.iter().for_each(|reporter| reporter.report(kind.clone()));
    }

    /// Called under the lock of the snapshot, so that all published output is counted.
    fn count(&self, before: &Extent, after: &Extent) {
        self.reporter.iter().for_each(|reporter| reporter.count_output(before, after));
    }

    /// The next command; waits forever once there are no senders. Cancel-safe.
    pub(crate) async fn command(&mut self) -> Command {
        match self.mailbox.recv().await {
            Some(command) => command,
            None => pending().await,
        }
    }

    /// Publishes the extent of the log. Called after each append, never before.
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

    /// It has timed out; the launch says what happens then.
    pub(crate) fn publish_timed_out(&self, which: Timeout) {
        if self.snapshot.borrow().timed_out_at.is_some() {
            // By an earlier worker.
            return;
        }
        let at = SystemTime::now();
        self.entry.iter().for_each(|entry| entry.timed_out(at));
        self.snapshot.send_modify(|snapshot| snapshot.timed_out_at = Some(at));
        self.report(EventKind::TimedOut { which });
    }

    /// The leader has exited.
    pub(crate) fn publish_draining(&self) {
        self.snapshot.send_modify(|snapshot| snapshot.phase = Phase::Draining);
    }

    /// Writes the ending into the journal, with the whole log if that is short.
    pub(crate) fn write_down(
        &mut self,
        ending: &Ending,
        extent: &Extent,
        short: Option<&ShortLog>,
    ) {
        if let Some(entry) = self.entry.take() {
            entry.ended(ending, extent, short);
        }
    }

    /// Publishes phase and final length as one value, then signals callers that wait only for the
    /// ending. It is written down.
    pub(crate) fn publish_ending(&mut self, ending: Ending, extent: Extent, log_open: bool) {
        let ending = Arc::new(ending);
        let phase = Phase::Ended(Arc::clone(&ending));
        self.snapshot.send_modify(|snapshot| {
            self.count(&snapshot.extent, &extent);
            let timed_out_at = snapshot.timed_out_at;
            *snapshot = Snapshot { phase, extent, log_open, timed_out_at };
            // Under the lock of the snapshot: a client that sees the event also sees the ending, and
            // the process cannot be reported as forgotten before its ending is reported.
            self.reporter.iter().for_each(|reporter| reporter.report_ending(&ending));
        });
        self.ending.send_replace(Some(ending));
    }

    /// No late output can come any more.
    pub(crate) fn publish_closed(&self) {
        self.snapshot.send_modify(|snapshot| snapshot.log_open = false);
    }

    fn publish_lost(&mut self) {
        let StartTime { wall: started, clock } = self.started;
        let end = End::Unseen { found: SystemTime::now(), after: clock.elapsed() };
        let extent = self.snapshot.borrow().extent.clone();
        let ending = Ending::lost(LostWhy::OwnerGone, extent.len, Times { started, end });
        self.write_down(&ending, &extent, None);
        self.publish_ending(ending, extent, false);
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
