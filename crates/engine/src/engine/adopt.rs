//! Adoption: a child gets a log, which is made before it, an owner and a place in the map.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use lastbyte_output::log::{Pool, Streams as LogStreams, Writer};
use lastbyte_sys::spawn::{OurEnds, OutputEnds};
use lastbyte_sys::{Child, pty};
use tokio::task::spawn_blocking;

use super::Inner;
use crate::clock::{AgeFrom, after_waiters, unix_ms};
use crate::feed::{EventKind, Reporter};
use crate::journal::{Entry, Recorded};
use crate::launch::{Launch, OnQuota, Spec, Stdin, Streams, Touches};
use crate::owner::holds::Holds;
use crate::owner::owner_end::{OwnerEnd, StartTime};
use crate::owner::pump::Pump;
use crate::owner::stdin::{EndOfFile, StdinGate, StdinQueue};
use crate::owner::{Core, Exit, Running, Timers, own};
use crate::process::{Process, Shared};
use crate::stop::{Escalation, StopPolicy, Verb};
use crate::tree::{KillOnDrop, Tree};

/// All that a process needs besides its child, made before there is one: what this program has no
/// room for is missing before the command runs.
#[derive(Debug)]
pub(super) struct Prepared {
    pump: Pump,
    holds: Option<Holds>,
    stdin: Option<(StdinQueue, StdinGate)>,
}

/// A process whose owner has not begun.
#[derive(Debug)]
pub(super) struct Adopted {
    process: Process,
    running: Running,
    owner_end: OwnerEnd,
}

impl Inner {
    /// The log of a process and what fills it.
    pub(super) fn prepare(
        &self,
        started: SystemTime,
        launch: &Launch,
        ends: OurEnds,
    ) -> io::Result<Prepared> {
        let OurEnds { stdin, output } = ends;
        let holds = match launch.on_quota {
            OnQuota::Drop => None,
            OnQuota::Block => Some(Holds::new()),
        };
        let stdin = input(&launch.stdin, stdin, &output)?;
        let streams = log_streams(launch.streams);
        let log = || Ok(Writer::new(self.logs.take()?, streams, launch.quota, unix_ms(started)));
        let pump = Pump::new(output, log, Arc::clone(&self.large_pipes), holds.clone())?;
        Ok(Prepared { pump, holds, stdin })
    }

    /// Nothing came of it, and that was written down: others can have its file.
    pub(super) fn give_back(&self, prepared: Prepared, recorded: &Recorded) {
        prepared.pump.log().settle();
        give_back(&self.logs, prepared.pump.into_log(), recorded);
    }

    /// Gives a started child its owner. Does not fail: the command runs.
    pub(super) fn adopt(
        &self,
        (launch, spec): (&Launch, Arc<Spec>),
        prepared: Prepared,
        (child, tree): (Child, Tree),
        (recorded, begun): (Arc<Recorded>, StartTime),
    ) -> Adopted {
        let Prepared { pump, holds, stdin } = prepared;
        let (log, pid) = (pump.log().reader(), child.pid());
        let guard = KillOnDrop::new(tree.clone());
        let share = Arc::new(self.disk.share());
        let first_hold = Mutex::new(holds.as_ref().map(|holds| holds.hold(0)));
        let (stdin, gate) = stdin.unzip();
        let running = Running {
            core: Box::new(Core {
                pump,
                tree: tree.clone(),
                guard,
                drain: launch.drain,
                escalation: Escalation::default(),
                share: Arc::clone(&share),
                stops: self.stops.clone(),
            }),
            exit: Exit::new(&child),
            child,
            stdin,
            timers: Timers::new(launch.timeouts, begun.clock),
            on_timeout: launch.on_timeout,
            policy: launch.stop,
            stopping: None,
            backstop: None,
        };
        let (owner_end, owner) = OwnerEnd::new(begun);
        let process = Process::new(Shared {
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
        reporter.report(EventKind::Started);
        owner_end.report_to(reporter);
        owner_end.write_into(entry);
        let (ended, tree) = (Arc::clone(&self.ended), process.tree().clone());
        let (logs, recorded) = (Arc::clone(&self.logs), Arc::clone(process.recorded()));
        tokio::spawn(async move {
            let log = own(running, owner_end).await;
            after_waiters().await;
            give_back(&logs, log, &recorded);
            tree.give_back_if_empty();
            ended.notify_one();
        });
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
    /// While the command that was just started comes to its first byte.
    fn refill_logs(&self) {
        if self.logs.begins_to_run_low() {
            let logs = Arc::clone(&self.logs);
            spawn_blocking(move || logs.refill());
        }
    }
}

impl Prepared {
    /// Which file the log has.
    pub(super) fn log_number(&self) -> u64 {
        self.pump.log().number()
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
) -> io::Result<Option<(StdinQueue, StdinGate)>> {
    let (mut queue, gate) = match (asked, output, pipe) {
        (Stdin::Open | Stdin::Given(_), OutputEnds::Pty { ours, .. }, _) => {
            let byte = pty::end_of_file(ours)?;
            StdinQueue::new(ours.try_clone()?, EndOfFile::Type(byte), None)?
        }
        (_, _, Some(pipe)) => StdinQueue::new(pipe, EndOfFile::Close, None)?,
        (Stdin::Open | Stdin::Closed | Stdin::Given(_), _, None) => return Ok(None),
    };
    if let Stdin::Given(input) = asked {
        // A new queue has room for what a plan lets through.
        queue.give(input).map_err(io::Error::other)?;
    }
    Ok(Some((queue, gate)))
}
