//! What an owner has besides the process itself: the mailbox it answers and the snapshot it
//! publishes.

use std::future::pending;
use std::io;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
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
    Write(stdin::Write),
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
    ///
    /// Boxed: a mailbox has space for 32 commands from the start, in every process.
    mailbox: mpsc::UnboundedReceiver<Box<Command>>,
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

/// What callers have of an owner: their ends of its channels, and only the last snapshot once it is
/// done. The channels take a kilobyte and keep the memory of the owner's task from being free.
#[derive(Debug)]
pub(crate) struct OwnerHandle(RwLock<Ownership>);

#[derive(Debug)]
enum Ownership {
    Owned(Channels),
    /// Nothing of it changes any more.
    Done(Snapshot),
}

/// The callers' ends of the channels.
#[derive(Debug, Clone)]
struct Channels {
    mailbox: mpsc::UnboundedSender<Box<Command>>,
    snapshot: watch::Receiver<Snapshot>,
    ending: watch::Receiver<Option<Arc<Ending>>>,
}

/// A snapshot that may change, or the last one.
#[derive(Debug)]
pub(crate) enum Latest {
    Changing(watch::Receiver<Snapshot>),
    Last(Snapshot),
}

impl OwnerHandle {
    /// For an ended process that has no owner.
    pub(crate) fn of_ended(
        ending: Ending,
        extent: Extent,
        timed_out_at: Option<SystemTime>,
    ) -> Self {
        let phase = Phase::Ended(Arc::new(ending));
        let last = Snapshot { phase, extent, log_open: false, timed_out_at };
        Self(RwLock::new(Ownership::Done(last)))
    }

    /// Calls a function with the snapshot of now.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Snapshot) -> T) -> T {
        match &*self.read() {
            Ownership::Owned(channels) => look(&channels.snapshot.borrow()),
            Ownership::Done(last) => look(last),
        }
    }

    pub(crate) fn latest(&self) -> Latest {
        match &*self.read() {
            Ownership::Owned(channels) => Latest::Changing(channels.snapshot.clone()),
            Ownership::Done(last) => Latest::Last(last.clone()),
        }
    }

    /// Changes when there is an ending; `None` once the owner is done.
    pub(crate) fn endings(&self) -> Option<watch::Receiver<Option<Arc<Ending>>>> {
        self.channels(|channels| channels.ending.clone())
    }

    /// `None` when the owner is gone.
    pub(crate) fn send(&self, command: Command) -> Option<()> {
        self.channels(|channels| channels.mailbox.send(Box::new(command)).ok()).flatten()
    }

    /// Lets go of the channels if nothing can change any more.
    pub(crate) fn settle(&self) {
        let last = self.look(|snapshot| (!snapshot.log_open).then(|| snapshot.clone()));
        if let Some(last) = last {
            // A command that is still in the mailbox has no owner to answer it.
            *self.0.write().unwrap_or_else(PoisonError::into_inner) = Ownership::Done(last);
        }
    }

    fn channels<T>(&self, use_them: impl FnOnce(&Channels) -> T) -> Option<T> {
        match &*self.read() {
            Ownership::Owned(channels) => Some(use_them(channels)),
            Ownership::Done(_) => None,
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Ownership> {
        // It is changed in one step, so a poisoned lock is usable.
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Latest {
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Snapshot) -> T) -> T {
        match self {
            Self::Changing(snapshots) => look(&snapshots.borrow()),
            Self::Last(last) => look(last),
        }
    }
}

impl OwnerEnd {
    /// Of a process that is now as the snapshot says.
    pub(crate) fn new(started: StartTime, snapshot: Snapshot) -> (Self, OwnerHandle) {
        let (sender, mailbox) = mpsc::unbounded_channel();
        let ending = snapshot.ending().cloned();
        let (snapshot, snapshots) = watch::channel(snapshot);
        let (ending, endings) = watch::channel(ending);
        let channels = Channels { mailbox: sender, snapshot: snapshots, ending: endings };
        let owner = OwnerHandle(RwLock::new(Ownership::Owned(channels)));
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
            Some(command) => *command,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_let_go_of_once_nothing_can_change_and_not_before() {
        let started = StartTime { wall: SystemTime::now(), clock: tokio::time::Instant::now() };
        let (end, handle) = OwnerEnd::new(started, Snapshot::first());
        let snapshots = end.snapshot.clone();
        handle.settle();
        assert!(handle.send(Command::Squeeze).is_some(), "it has an owner");
        drop(end);
        assert_eq!(snapshots.receiver_count(), 1);
        handle.settle();
        assert_eq!(snapshots.receiver_count(), 0);
        assert!(handle.send(Command::Squeeze).is_none() && handle.endings().is_none());
        assert_eq!(handle.look(Snapshot::clone), *snapshots.borrow());
    }
}
