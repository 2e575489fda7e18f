//! Adoption: a child gets a log, which is made before it, an owner and a place in the map.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::SystemTime;

use lastbyte_output::log::{Pool, Streams as LogStreams, Writer};
use lastbyte_sys::spawn::{OurEnds, OutputEnds};
use lastbyte_sys::{Child, pty};
use tokio::task::spawn_blocking;

use super::Inner;
use crate::clock::{AgeFrom, after_waiters, unix_ms};
use crate::feed::Reporter;
use crate::journal::{Entry, Recorded};
use crate::launch::{Launch, OnQuota, Spec, Stdin, Streams, Touches};
use crate::notes::{Notes, Terms};
use crate::owner::ends::Ends;
use crate::owner::holds::Holds;
use crate::owner::owner_end::{OwnerEnd, StartTime};
use crate::owner::pump::Pump;
use crate::owner::stdin::{EndOfFile, StdinGate, StdinQueue};
use crate::owner::{Core, Exit, KernelLimits, Running, Sampler, Timers, own};
use crate::process::clients::Clients;
use crate::process::snapshot::Snapshot;
use crate::process::terminal_size::TerminalSize;
use crate::process::{Process, Shared};
use crate::stop::{Escalation, StopPolicy, Verb};
use crate::tree::{KillOnDrop, Tree};

/// All that a process needs besides its child, made before there is one: what this program has no
/// room for is missing before the command runs.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) pump: Pump,
    pub(super) holds: Option<Holds>,
    pub(super) stdin: Option<(StdinQueue, StdinGate)>,
    pub(super) notes: Notes,
    pub(super) timed_out_at: Option<SystemTime>,
}

/// A process whose owner has not begun.
#[derive(Debug)]
pub(super) struct Adopted {
    pub(super) process: Process,
    pub(super) running: Running,
    pub(super) owner_end: OwnerEnd,
}

impl Inner {
    /// The log of a process and what fills it.
    pub(super) fn prepare(
        &self,
        started: SystemTime,
        launch: &Launch,
        (ends, notes): (OurEnds, Notes),
    ) -> io::Result<Prepared> {
        let OurEnds { stdin, output } = ends;
        let holds = match launch.on_quota {
            OnQuota::Drop => None,
            OnQuota::Block => Some(Holds::new(notes.clone())),
        };
        let stdin = input(&launch.stdin, stdin, &output, &notes)?;
        let streams = log_streams(launch.streams);
        let log = || Ok(Writer::new(self.logs.take()?, streams, launch.quota, unix_ms(started)));
        let mut ends = Ends::new(output, notes.slot())?;
        ends.mask(&launch.secrets, notes.slot())?;
        let pump = Pump::new(ends, log, Arc::clone(&self.large_pipes), holds.clone())?;
        Ok(Prepared { pump, holds, stdin, notes, timed_out_at: None })
    }

    /// Nothing came of it, and that was written down: others can have its file.
    pub(super) fn give_back(&self, prepared: Prepared, recorded: &Recorded) {
        prepared.pump.log().settle();
        give_back(&self.logs, prepared.pump.into_log(), recorded);
    }

    /// Gives a started child its owner. Does not fail: the command runs.
    pub(super) fn adopt(
        &self,
        (spec, terms): (Arc<Spec>, Terms),
        prepared: Prepared,
        (child, tree): (Child, Tree),
        (recorded, begun): (Arc<Recorded>, StartTime),
    ) -> Adopted {
        let Prepared { pump, holds, stdin, notes, timed_out_at } = prepared;
        let (log, pid) = (pump.log().reader(), child.pid());
        let guard = KillOnDrop::new(tree.clone());
        let share = Arc::new(self.disk.share());
        // From the first byte; after a take-over, from where the slowest reader was.
        let floor = notes.floor();
        let first_hold = Mutex::new(holds.as_ref().map(|holds| holds.hold(floor)));
        let (_, last_output) = notes.instants().unwrap_or((begun.clock, begun.clock));
        let timers = Timers::new(terms.limits.timeouts, begun.clock, last_output);
        let timers = Timers::after(timed_out_at.is_some(), terms.limits.on_timeout, timers);
        share.set(pump.log().kept());
        let snapshot = Snapshot { extent: pump.log().extent(), timed_out_at, ..Snapshot::first() };
        let (stdin, gate) = stdin.unzip();
        let terminal = TerminalSize::new(pump.terminal_size(), spec.streams);
        let stop = notes.stop();
        let hidden = stdin.as_ref().is_some_and(StdinQueue::has_secret);
        let echo_look = hidden.then(tokio::time::Instant::now);
        let mut running = Running {
            core: Box::new(Core {
                pump,
                tree: tree.clone(),
                guard,
                drain: terms.drain,
                escalation: Escalation::noted(&notes),
                share: Arc::clone(&share),
                stops: self.stops.clone(),
                notes,
                limits: KernelLimits::new(&spec),
            }),
            exit: Exit::new(&child),
            child,
            stdin,
            timers,
            on_timeout: terms.limits.on_timeout,
            policy: spec.stop,
            stopping: None,
            backstop: None,
            sampler: Sampler::new(&spec, &tree),
            echo_look,
        };
        stop.into_iter().for_each(|stop| running.resume_stop(stop));
        let (owner_end, owner) = OwnerEnd::new(begun, snapshot);
        let process = Process::new(Shared {
            terminal,
            clients: Clients::new(spec.on_disconnect),
            spec,
            pid,
            owner,
            stdin: gate,
            tree,
            log,
            readers: Arc::clone(&self.readers),
            share,
            stops: self.stops.clone(),
            holds,
            first_hold,
            keyboard: OnceLock::new(),
            keyboards: AtomicU64::new(0),
            recorded,
            age_from: AgeFrom::Start(begun.clock),
        });
        Adopted { process, running, owner_end }
    }

    /// Enters it into the map and lets its owner begin. If the engine was closed meanwhile, it is
    /// stopped, and has ended when this returns: a command that ran is not said to have failed.
    pub(super) async fn register(
        &self,
        adopted: Adopted,
        entry: Option<Entry>,
        touches: Option<Touches>,
    ) -> Process {
        let Adopted { process, running, mut owner_end } = adopted;
        let is_closed = self.processes().add(&process);
        // Reported before its owner begins, so that `started` is its first event.
        let reporter = Reporter::new(self.feed.clone(), Arc::clone(process.spec()), touches);
        reporter.report_start();
        owner_end.report_to(reporter);
        owner_end.write_into(entry);
        self.let_owner_begin(&process, own(running, owner_end));
        if is_closed {
            process.stop_by(StopPolicy::KILL, Verb::Close).await;
            process.ended().await;
        } else {
            self.refill_logs();
        }
        process
    }
}

impl Inner {
    /// The owner returns the log when nothing will be added to it.
    pub(super) fn let_owner_begin(
        &self,
        process: &Process,
        owner: impl Future<Output = Writer> + Send + 'static,
    ) {
        process.stop_when_left();
        let (ended, logs) = (Arc::clone(&self.ended), Arc::clone(&self.logs));
        let process = process.clone();
        tokio::spawn(async move {
            let log = owner.await;
            after_waiters().await;
            process.settle();
            give_back(&logs, log, process.recorded());
            process.tree().give_back_if_empty();
            ended.notify_one();
        });
    }

    /// While the command that was just started comes to its first byte.
    fn refill_logs(&self) {
        if self.logs.begins_to_run_low() {
            let logs = Arc::clone(&self.logs);
            spawn_blocking(move || logs.refill());
        }
    }
}

/// Not while a record waits for the disk: then the file has the only copy that survives a crash.
fn give_back(logs: &Pool, log: Writer, recorded: &Recorded) {
    if recorded.is_on_disk() != Some(false) {
        logs.give_back(log);
    }
}

/// Which streams the log tells apart.
pub(super) fn log_streams(streams: Streams) -> LogStreams {
    match streams {
        Streams::Merged | Streams::Pty(_) => LogStreams::One,
        Streams::Split => LogStreams::Split,
    }
}

/// The way into the command, if it was asked for: its pipe, or the terminal.
fn input(
    asked: &Stdin,
    pipe: Option<OwnedFd>,
    output: &OutputEnds,
    notes: &Notes,
) -> io::Result<Option<(StdinQueue, StdinGate)>> {
    let (end, end_of_file) = match (asked, output, pipe) {
        (Stdin::Open | Stdin::Given(_), OutputEnds::Pty { ours, .. }, _) => {
            let byte = pty::end_of_file(ours)?;
            (ours.try_clone()?, EndOfFile::Type(byte))
        }
        (_, _, Some(pipe)) => (pipe, EndOfFile::Close),
        (Stdin::Open | Stdin::Closed | Stdin::Given(_), _, None) => return Ok(None),
    };
    notes.note_stdin(end_of_file);
    let (mut queue, gate) = StdinQueue::new(end, end_of_file, notes.slot())?;
    if let Stdin::Given(input) = asked {
        // A new queue has room for what a plan lets through.
        queue.give(input).map_err(io::Error::other)?;
    }
    Ok(Some((queue, gate)))
}
