//! What the worker before this one had running, and this one goes on with.
//!
//! The keeper has kept the statuses, and a stand-in the descriptors; the slot has the notes of the
//! owner, and the journal what was launched. Nothing is written into the journal for a process that
//! goes on.
//!
//! A slot becomes ours when nothing can fail any more. Until then it is the last worker's, and whatever
//! this one lacks, it can leave all of it to the next one.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use lastbyte_output::log::{Place as LogPlace, Progress, Writer};
use lastbyte_sys::cgroup::Cgroup;
use lastbyte_sys::registry::{Inherited, Leader, Place, Registry, Slot};
use lastbyte_sys::{Child, Errno, Found, Signal, adopted, orphans, signal_unreaped_group, tag};

use super::Inner;
use super::adopt::{Adopted, Prepared, log_streams};
use crate::clock::{AgeFrom, unix_ms};
use crate::feed::Reporter;
use crate::journal::{Entry, Past};
use crate::launch::OnQuota;
use crate::notes::{Notes, Terms};
use crate::owner::ends::Ends;
use crate::owner::holds::Holds;
use crate::owner::owner_end::{OwnerEnd, StartTime};
use crate::owner::pump::Pump;
use crate::owner::stdin::StdinQueue;
use crate::owner::{Core, hold_open, own};
use crate::process::clients::Clients;
use crate::process::snapshot::{Phase, Snapshot};
use crate::process::terminal_size::TerminalSize;
use crate::process::{Process, Shared};
use crate::stop::{Escalation, StopPolicy, Verb};
use crate::tree::{KillOnDrop, Tree};

/// What a keeper has for this program.
#[derive(Debug)]
pub struct FromKeeper {
    pub registry: Registry,
    /// The keeper's pid.
    pub keeper: i32,
    /// What the worker before this one had running.
    pub inherited: Vec<Inherited>,
}

/// What became of a process that was entered in a slot.
pub(super) enum TakenOver {
    /// It runs, or what is left of it holds its output open.
    Process(Process),
    /// Its command never ran, so there is no such process.
    NeverRan,
    /// Nothing of it is left but what the journal has, and its cgroup.
    Nothing(Option<Cgroup>),
}

/// What a log says that was cut: the pipe of its output was lost.
const CUT: Errno = Errno::PIPE;

/// How long a leader may take from its birth to its program.
const BIRTH: Duration = Duration::from_millis(500);

impl FromKeeper {
    /// Goes on with what workers share. To be called before anything is started.
    pub(super) fn begin(&self) {
        orphans::adopted_by(self.keeper);
        tag::go_on(self.registry.header());
    }
}

impl Inner {
    /// Goes on with a process of the worker before this one. Fails only if this worker lacks something
    /// that the next one may have.
    pub(super) fn take_over(
        &self,
        past: &Past,
        cgroup: Option<Cgroup>,
        Inherited { place, descriptors, lost }: Inherited,
    ) -> io::Result<TakenOver> {
        let Some(registry) = self.registry else { return Ok(TakenOver::Nothing(cgroup)) };
        let slot = registry.take_over(place);
        let mut ends = Ends::taken_over(descriptors, &slot);
        let lost = match go_on_masking(past, &mut ends) {
            Err(error) if is_shortage(&error) => return Err(error),
            masking => lost || masking.is_err(),
        };
        if past.ended.is_some() {
            return self.go_on_late(past, cgroup, (slot, ends));
        }
        if !has_run(place) {
            slot.own();
            place.release();
            self.trees.regrow(0, past.launched.spec.id, cgroup).give_back_if_empty();
            self.journal.iter().for_each(|journal| journal.failed(past.launched.spec.id));
            return Ok(TakenOver::NeverRan);
        }
        let Some(leader) = Child::find(place)? else {
            slot.own();
            return Ok(TakenOver::Nothing(cgroup));
        };
        let notes = Notes::new(Some(Arc::clone(&slot)));
        let progress = match notes.progress() {
            progress if lost => Progress { failed: progress.failed.or(Some(CUT)), ..progress },
            progress => progress,
        };
        match self.ready_to_go_on(past, (&notes, ends), progress) {
            Ok(prepared) => {
                Ok(TakenOver::Process(self.go_on_running(past, cgroup, (leader, slot), prepared)))
            }
            Err(error) if is_shortage(&error) => Err(error),
            Err(_) => {
                slot.own();
                // It is not reaped, so the number is its own.
                signal_unreaped_group(leader.pid(), Signal::KILL);
                place.release();
                Ok(TakenOver::Nothing(cgroup))
            }
        }
    }

    /// All that can fail.
    fn ready_to_go_on(
        &self,
        past: &Past,
        (notes, mut ends): (&Notes, Ends),
        progress: Progress,
    ) -> io::Result<Prepared> {
        let terms = notes.terms();
        let (input, slot) = (ends.input.take(), notes.slot());
        let resume = |accepted| StdinQueue::resume(input, accepted, notes.stdin(), slot);
        let stdin = ends.accepted.take().map(resume).transpose()?;
        let holds = match terms.limits.on_quota {
            OnQuota::Drop => None,
            OnQuota::Block => Some(Holds::new(notes.clone())),
        };
        let log = || self.go_on_writing(past, terms, progress);
        let pump = Pump::new(ends, log, Arc::clone(&self.large_pipes), holds.clone())?;
        let (notes, timed_out_at) = (notes.clone(), past.timed_out_at);
        Ok(Prepared { pump, holds, stdin, notes, timed_out_at })
    }

    fn go_on_running(
        &self,
        past: &Past,
        cgroup: Option<Cgroup>,
        (leader, slot): (Found, Arc<Slot>),
        prepared: Prepared,
    ) -> Process {
        let notes = &prepared.notes;
        // Before the slot is ours: then it no longer shows that pipes were lost.
        if prepared.pump.log().failed().is_some() {
            notes.note_progress(prepared.pump.log().progress());
        }
        prepared.pump.enter();
        prepared.stdin.iter().for_each(|(queue, _)| queue.enter());
        slot.own();
        let spec = Arc::clone(&past.launched.spec);
        let terms = notes.terms();
        let child = Child::taken_over(leader, slot);
        let tree = self.trees.take_over(child.pid(), spec.id, cgroup, notes.tag());
        let (clock, _) = notes.instants().unwrap_or_else(|| (now(), now()));
        let begun = StartTime { wall: spec.started, clock };
        let entry = self.journal.as_ref().map(|journal| Entry::again(journal, spec.id));
        let recorded = entry.as_ref().map(Entry::recorded).unwrap_or_default();
        let adopted =
            self.adopt((Arc::clone(&spec), terms), prepared, (child, tree), (recorded, begun));
        let Adopted { process, running, mut owner_end } = adopted;
        owner_end.report_to(Reporter::new(self.feed.clone(), spec, None));
        owner_end.write_into(entry);
        self.let_owner_begin(&process, own(running, owner_end));
        if !terms.outlives_server {
            let process = process.clone();
            tokio::spawn(async move { process.stop_by(StopPolicy::default(), Verb::Close).await });
        }
        process
    }

    /// Of a process that has ended, but whose output somebody holds open.
    fn go_on_late(
        &self,
        past: &Past,
        cgroup: Option<Cgroup>,
        (slot, ends): (Arc<Slot>, Ends),
    ) -> io::Result<TakenOver> {
        // A log that is in its record had come to its end.
        let can_grow = ends.has_output() && past.short.is_none();
        let Some((ending, _)) = past.ended.clone().filter(|_| can_grow) else {
            slot.own();
            slot.place().release();
            return Ok(TakenOver::Nothing(cgroup));
        };
        let spec = Arc::clone(&past.launched.spec);
        let notes = Notes::new(Some(Arc::clone(&slot)));
        let (terms, pid) = (notes.terms(), past.pid.unwrap_or(0));
        let progress = Progress { final_len: Some(ending.final_len), ..notes.progress() };
        let log = || self.go_on_writing(past, terms, progress);
        let pump = match Pump::new(ends, log, Arc::clone(&self.large_pipes), None) {
            Err(error) if is_shortage(&error) => return Err(error),
            pump => pump,
        };
        pump.iter().for_each(Pump::enter);
        slot.own();
        // Its worker may have died before it could say so.
        slot.place().release();
        let Ok(pump) = pump else { return Ok(TakenOver::Nothing(cgroup)) };
        let tree = self.trees.take_over_ended(pid, spec.id, cgroup, notes.tag());
        let share = Arc::new(self.disk.share());
        share.set(pump.log().kept());
        let (clock, _) = notes.instants().unwrap_or_else(|| (now(), now()));
        let snapshot = Snapshot {
            phase: Phase::Ended(Arc::new(ending)),
            extent: pump.log().extent(),
            log_open: true,
            timed_out_at: past.timed_out_at,
        };
        let begun = StartTime { wall: spec.started, clock };
        let (owner_end, owner) = OwnerEnd::new(begun, snapshot);
        let log = pump.log().reader();
        let core = self.core_of_ended(pump, &tree, terms, (Arc::clone(&share), notes));
        let process = Process::new(Shared {
            terminal: TerminalSize::new(None, spec.streams),
            clients: Clients::new(spec.on_disconnect),
            spec,
            pid,
            owner,
            stdin: None,
            tree,
            log,
            readers: Arc::clone(&self.readers),
            share,
            stops: self.stops.clone(),
            holds: None,
            first_hold: Mutex::new(None),
            keyboard: OnceLock::new(),
            keyboards: AtomicU64::new(0),
            recorded: Arc::new(self.recorded()),
            age_from: AgeFrom::Start(clock),
        });
        self.let_owner_begin(&process, hold_open(core, owner_end));
        Ok(TakenOver::Process(process))
    }

    fn core_of_ended(
        &self,
        pump: Pump,
        tree: &Tree,
        terms: Terms,
        (share, notes): (Arc<super::disk::Share>, Notes),
    ) -> Box<Core> {
        let mut guard = KillOnDrop::new(tree.clone());
        guard.disarm();
        Box::new(Core {
            pump,
            tree: tree.clone(),
            guard,
            drain: terms.drain,
            escalation: Escalation::default(),
            share,
            stops: self.stops.clone(),
            notes,
            limits: None,
        })
    }

    fn go_on_writing(&self, past: &Past, terms: Terms, progress: Progress) -> io::Result<Writer> {
        let spec = &past.launched.spec;
        let number = past.launched.log.ok_or(io::ErrorKind::NotFound)?;
        let place = LogPlace::new(&self.log_folder(), number);
        let (streams, started) = (log_streams(spec.streams), unix_ms(spec.started));
        Writer::resume(place, streams, terms.limits.quota, started, progress)
    }
}

/// Ends what the journal does not know: nobody can ask for it. That is a start whose record the disk
/// did not take, or one that was cut off before its record.
pub(super) fn give_up(registry: Registry, Inherited { place, descriptors, .. }: Inherited) {
    let slot = registry.take_over(place);
    slot.own();
    if let Some(pid) = place.pid().filter(|_| place.leader() == Leader::Kept) {
        // It is not reaped, so the number is its own.
        signal_unreaped_group(pid, Signal::KILL);
    }
    place.release();
    drop(Ends::taken_over(descriptors, &slot));
}

fn go_on_masking(past: &Past, ends: &mut Ends) -> io::Result<()> {
    if past.launched.spec.secret_names.is_empty() { Ok(()) } else { ends.go_on_masking() }
}

fn is_shortage(error: &io::Error) -> bool {
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|errno| shortages.contains(&errno))
}

/// Whether the leader has executed its program. It may just have been born, or been killed together
/// with its worker before it came to its program.
fn has_run(place: Place) -> bool {
    let Some(pid) = place.pid() else { return false };
    let born = Instant::now();
    // What it says itself is that it is about to. It is not reaped, so the number is its own.
    let is_unborn = || !place.has_executed() || adopted::has_executed(pid) == Ok(false);
    while place.exit().is_none() && is_unborn() && born.elapsed() < BIRTH {
        pause();
    }
    place.exit().is_none_or(|exit| exit.executed)
}

#[expect(clippy::disallowed_methods, reason = "the leader of a worker that is gone tells nobody")]
fn pause() {
    thread::sleep(Duration::from_millis(1));
}

fn now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}
