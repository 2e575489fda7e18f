//! Adoption: a child that was spawned gets a log, an owner and a place in the map.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use lastbyte_output::log::{Keep, Place, Streams as LogStreams, Writer};
use lastbyte_sys::pty;
use lastbyte_sys::readiness::{self, Interest};
use lastbyte_sys::spawn::{OutputEnds, Spawned};
use tokio::task::spawn_blocking;

use super::Inner;
use super::start::StartError;
use crate::Id;
use crate::clock::{breather, unix_ms};
use crate::desk::{Desk, Started as Begun};
use crate::feed::{EventAbout, EventKind, Reporter};
use crate::journal::{Entry, Journal, Keeper};
use crate::launch::{Launch, OnQuota, Stdin, Streams, Touches};
use crate::owner::{Core, Running, Timers, own};
use crate::pins::Pins;
use crate::process::{About, Process, Shared};
use crate::pump::Pump;
use crate::stdin::{EndOfFile, StdinGate, StdinQueue};
use crate::stop::{Escalation, StopPolicy, stop};
use crate::tree::{KillOnDrop, Tree};

/// A process whose owner has not begun.
#[derive(Debug)]
pub(super) struct Adopted {
    process: Process,
    running: Running,
    desk: Desk,
}

impl Inner {
    /// Gives a started child its owner.
    pub(super) fn adopt(
        &self,
        launch: &Launch,
        (spawned, tree): (Spawned, Tree),
        about: About,
        begun: Begun,
    ) -> io::Result<Adopted> {
        let Spawned { child, stdin, output } = spawned;
        let guard = KillOnDrop::new(tree.clone());
        let place = Place::new(&self.logs(), &about.id.to_string());
        let started_ms = unix_ms(about.started);
        let writer =
            Writer::new(place.clone(), log_streams(launch.streams), launch.quota, started_ms)
                .with_spares(self.spares.clone())
                .kept_by(self.journal.clone().map(|journal| keeper(about.id, journal)));
        let log = writer.reader();
        let share = Arc::new(self.disk.share());
        let pins = match launch.on_quota {
            OnQuota::Drop => None,
            OnQuota::Block => Some(Pins::new()),
        };
        let first_pin = Mutex::new(pins.as_ref().map(|pins| pins.pin(0)));
        let (stdin, gate) = input(&launch.stdin, stdin, &output)?.unzip();
        let running = Running {
            core: Box::new(Core {
                pump: Pump::new(output, writer, Arc::clone(&self.large_pipes), pins.clone())?,
                tree: tree.clone(),
                guard,
                drain: launch.drain,
                escalation: Escalation::default(),
                share: Arc::clone(&share),
                stops: self.stops.clone(),
            }),
            exit: readiness::watch(child.exit_watch(), Interest::READABLE)?,
            child,
            stdin,
            timers: Timers::new(launch.timeouts, begun.clock),
            on_timeout: launch.on_timeout,
            policy: launch.stop,
            stopping: None,
            backstop: None,
        };
        let (desk, counter) = Desk::new(begun);
        let process = Process::new(Shared {
            about,
            counter,
            stdin: gate,
            tree,
            log,
            readers: Arc::clone(&self.readers),
            place,
            share,
            stops: self.stops.clone(),
            pins,
            first_pin,
        });
        Ok(Adopted { process, running, desk })
    }

    /// Enters it into the map and lets its owner begin, unless the engine was closed meanwhile:
    /// then nothing stays.
    pub(super) async fn register(
        &self,
        adopted: Adopted,
        entry: Option<Entry>,
        touches: Option<Touches>,
    ) -> Result<Process, StartError> {
        let Adopted { process, running, mut desk } = adopted;
        let entered = self.registry().add(&process);
        if entered {
            // Told of before its owner begins, and so before all else that happens to it.
            let about = Arc::new(EventAbout::of(process.about()));
            let reporter = Reporter::new(self.feed.clone(), about, touches);
            reporter.report(EventKind::Started);
            desk.report_to(reporter);
        }
        // Taken back at the end of this function where nothing stays.
        let _taken_back = match entered {
            true => {
                desk.write_into(entry);
                None
            }
            false => entry,
        };
        let (ended, tree) = (Arc::clone(&self.ended), process.tree().clone());
        tokio::spawn(async move {
            own(running, desk).await;
            breather().await;
            tree.give_back_if_empty();
            ended.notify_one();
        });
        if entered {
            self.refill_spares();
            return Ok(process);
        }
        stop(process.tree().clone(), StopPolicy::KILL, Escalation::default()).await;
        process.ended().await;
        // A file that cannot be removed does not bring the process back.
        _ = process.place().remove();
        Err(StartError::Closed)
    }
}

impl Inner {
    /// While the command that was just started comes to its first byte.
    fn refill_spares(&self) {
        let low = self.spares.as_ref().filter(|spares| spares.begins_to_run_low());
        if let Some(spares) = low.cloned() {
            spawn_blocking(move || spares.refill());
        }
    }
}

/// While its log is short.
fn keeper(id: Id, journal: Arc<Journal>) -> Arc<dyn Keep> {
    Arc::new(Keeper::new(id, journal))
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
            StdinQueue::new(ours.try_clone()?, EndOfFile::Type(byte))?
        }
        (_, _, Some(pipe)) => StdinQueue::new(pipe, EndOfFile::Close)?,
        (Stdin::Open | Stdin::Closed | Stdin::Given(_), _, None) => return Ok(None),
    };
    if let Stdin::Given(input) = asked {
        // A new queue has room for what a plan lets through.
        queue.give(input.clone()).map_err(io::Error::other)?;
    }
    Ok(Some((queue, gate)))
}
