//! A handle on a process: look, wait, read and command.
//!
//! `end_of_input` types the end of input again where it was missed,
//! `snapshot` is what it is at one instant, `ending` how it ended, `readers` keeps the logs open
//! that were read last, `log_source` is a log at one snapshot, for the views, `clients` are those
//! connected to it, `terminal_size` is what its terminal has.

pub(crate) mod clients;
mod end_of_input;
pub(crate) mod ending;
pub(crate) mod keyboard;
pub(crate) mod log_source;
mod readers;
pub(crate) mod snapshot;
pub(crate) mod terminal_size;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use lastbyte_output::log::{Extent, Horizon, Piece, ReadError, Reader, Run, Stamp, Stamped};
use lastbyte_sys::Signal;
use lastbyte_sys::pty::WindowSize;
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_blocking;

use crate::Id;
use crate::clock::{AgeFrom, unix_ms};
use crate::engine::PhaseKind;
use crate::engine::disk::Share;
use crate::journal::Recorded;
use crate::launch::Spec;
use crate::owner::holds::{Hold, Holds};
use crate::owner::owner_end::{
    Command, Delivery, Latest, OwnerHandle, ResizeError, SignalError, StopTicket,
};
use crate::process::clients::{Clients, Connected};
use crate::process::ending::Ending;
use crate::process::keyboard::{Holder, KeyboardClient};

use crate::engine::in_flight::InFlight;
use crate::owner::stdin::{StdinGate, StdinState, Then, Write, WriteError, Written};
use crate::process::snapshot::Snapshot;
use crate::process::terminal_size::TerminalSize;
use crate::stop::{Escalation, StopPolicy, StopProof, Verb, stop};
use crate::tree::{InputState, PortState, Survivor, Tree};

pub(crate) use readers::Readers;

/// Cheap to clone; holds no lock and no descriptor.
#[derive(Debug, Clone)]
pub struct Process {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) spec: Arc<Spec>,
    /// `None` for one that is kept without clients.
    pub(crate) clients: Option<Clients>,
    /// 0 if the server died during the start, so that it is not known.
    pub(crate) pid: i32,
    pub(crate) owner: OwnerHandle,
    pub(crate) stdin: Option<StdinGate>,
    pub(crate) tree: Tree,
    pub(crate) log: Reader,
    pub(crate) readers: Arc<Readers>,
    pub(crate) share: Arc<Share>,
    pub(crate) stops: InFlight,
    pub(crate) holds: Option<Holds>,
    /// Holds everything back until somebody takes it.
    pub(crate) first_hold: Mutex<Option<Hold>>,
    /// Made when it is first asked for.
    pub(crate) keyboard: OnceLock<Holder>,
    /// How many have had it.
    pub(crate) keyboards: AtomicU64,
    pub(crate) recorded: Arc<Recorded>,
    pub(crate) age_from: AgeFrom,
    pub(crate) terminal: TerminalSize,
}

impl Process {
    pub(crate) fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    pub fn id(&self) -> Id {
        self.shared.spec.id
    }

    /// What was launched.
    pub fn spec(&self) -> &Arc<Spec> {
        &self.shared.spec
    }

    /// The leader's; 0 if the server died during the start, so that it is not known.
    pub fn pid(&self) -> i32 {
        self.shared.pid
    }

    /// Whether all that is known of it is on disk, in the journal: an engine that begins after a
    /// crash would know the same. `None` where the engine keeps no journal.
    pub fn is_recorded(&self) -> Option<bool> {
        self.shared.recorded.is_on_disk()
    }

    pub(crate) fn age_from(&self) -> AgeFrom {
        self.shared.age_from
    }

    pub(crate) fn recorded(&self) -> &Arc<Recorded> {
        &self.shared.recorded
    }

    /// The leader's pid, if nobody saw the end of the process and the leader still runs.
    pub fn runs_unseen(&self) -> Option<i32> {
        let is_lost = self.phase() == PhaseKind::Lost;
        (is_lost && self.shared.tree.leader_runs()).then(|| self.pid())
    }

    /// The file that its output is in. Little output is kept in memory once it has ended.
    pub fn log_file(&self) -> Option<&Path> {
        self.shared.log.file()
    }

    /// Removes the files of its log, if it has any.
    pub(crate) fn remove_log(&self) -> io::Result<()> {
        self.shared.log.remove_files()
    }

    /// What its log takes on disk.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.shared.share.bytes()
    }

    /// Lets its log keep only its ends.
    pub(crate) fn squeeze(&self) {
        // An owner that is gone has nothing that grows.
        _ = self.shared.owner.send(Command::Squeeze);
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.shared.tree
    }

    /// Counts as a client of the process for as long as the answer lives. `None` for a process that
    /// is kept without clients.
    pub fn connect(&self) -> Option<Connected> {
        self.shared.clients.as_ref().map(Clients::connect)
    }

    /// Lets it be stopped when its clients are gone, if it was launched so.
    pub(crate) fn stop_when_left(&self) {
        if let Some(clients) = &self.shared.clients {
            tokio::spawn(clients.stop_when_gone(self.clone()));
        }
    }

    /// What it is at this instant.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.owner.look(Snapshot::clone)
    }

    /// Whether there is an ending, without a copy of anything.
    pub(crate) fn has_ended(&self) -> bool {
        self.shared.owner.look(|snapshot| snapshot.ending().is_some())
    }

    /// In which phase it is, without a copy of anything.
    pub(crate) fn phase(&self) -> PhaseKind {
        self.shared.owner.look(|snapshot| PhaseKind::from(&snapshot.phase))
    }

    /// Nothing can change any more: keeps only what an ended process needs.
    pub(crate) fn settle(&self) {
        self.shared.owner.settle();
    }

    /// Waits until the condition holds, and returns the snapshot in which it does. Also returns,
    /// with the last snapshot there will be, when the log is closed for good.
    pub async fn wait_for(&self, mut holds: impl FnMut(&Snapshot) -> bool) -> Snapshot {
        let mut snapshots = match self.shared.owner.latest() {
            Latest::Changing(snapshots) => snapshots,
            Latest::Last(last) => return last,
        };
        // The owner publishes its end before it goes, so an error comes with a final snapshot.
        let met = snapshots.wait_for(|snapshot| holds(snapshot) || !snapshot.log_open).await;
        met.map_or_else(|_| self.snapshot(), |snapshot| snapshot.clone())
    }

    /// Waits for bytes past a cursor, or for the log to close.
    pub async fn until_past(&self, cursor: u64) -> Snapshot {
        self.wait_for(|snapshot| snapshot.extent.len > cursor).await
    }

    /// Waits for the ending alone; wakes once.
    pub async fn ended(&self) -> Arc<Ending> {
        loop {
            if let Some(ending) = self.shared.owner.look(|snapshot| snapshot.ending().cloned()) {
                return ending;
            }
            if let Some(mut endings) = self.shared.owner.endings() {
                // An owner that goes away publishes a lost ending first.
                _ = endings.wait_for(Option::is_some).await;
            }
        }
    }

    /// A reader of the log, with files of its own.
    pub fn reader(&self) -> LogReader {
        let Shared { log, owner, readers, .. } = &*self.shared;
        LogReader { log: readers.get(self.id(), log), live: Live(owner.latest()) }
    }

    /// Holds the log for a reader that must miss nothing: the first one from its first byte, any
    /// other from where it ends now. `None` unless it was launched to block.
    pub fn hold(&self) -> Option<Hold> {
        let holds = self.shared.holds.as_ref()?;
        let first = self.shared.first_hold.lock().unwrap_or_else(PoisonError::into_inner).take();
        Some(first.unwrap_or_else(|| holds.hold(self.snapshot().extent.len)))
    }

    /// Sends a signal to the leader's group, or to what is left of it.
    pub async fn signal(&self, signal: Signal) -> Result<Delivery, SignalError> {
        if let Some(delivery) = self.ask(|reply| Command::Signal { signal, reply }).await {
            return Ok(delivery);
        }
        // The owner has finished its work; survivors that hold no pipe may still be there.
        let tree = self.shared.tree.clone();
        let count = spawn_blocking(move || tree.signal_group(signal)).await;
        match count.map_err(|_| SignalError)? {
            0 => Ok(Delivery::Nobody),
            count => Ok(Delivery::Survivors(count)),
        }
    }

    /// Stops the whole tree by the launch's policy and proves it. Works in every phase.
    pub async fn stop(&self, verb: Verb) -> StopProof {
        self.stop_by(self.shared.spec.stop, verb).await
    }

    /// As [`Process::stop`], by another policy. A second stop does not wait out a grace. Goes on
    /// when the caller goes away.
    pub async fn stop_by(&self, policy: StopPolicy, verb: Verb) -> StopProof {
        let (process, in_flight) = (self.clone(), self.shared.stops.begin());
        let stopping = tokio::spawn(async move {
            let proof = process.carry_out_stop(policy, verb).await;
            drop(in_flight);
            proof
        });
        // A stop that did not finish has proved nothing.
        stopping.await.unwrap_or_else(|_| StopProof::unproved(&self.shared.tree))
    }

    async fn carry_out_stop(&self, policy: StopPolicy, verb: Verb) -> StopProof {
        let ticket = self.ask(|reply| Command::Stopping { verb, policy, reply }).await;
        let (escalation, hurry) = match ticket {
            Some(StopTicket { escalation, hurry }) => (escalation, hurry),
            None => (Escalation::default(), false),
        };
        if hurry {
            // Those that asked before did so in vain.
            escalation.happens();
        }
        let policy = if hurry { StopPolicy::KILL } else { policy };
        stop(self.shared.tree.clone(), policy, escalation).await
    }

    /// Queues bytes for standard input. With an offset, bytes that were accepted before are not
    /// written again: that is answered alike after the exit. Refused at once when the queue has no
    /// room for what is new.
    pub async fn write(&self, bytes: Vec<u8>, offset: Option<u64>) -> Result<Written, WriteError> {
        self.write_by(None, bytes, offset, Then::KeepOpen).await
    }

    /// As [`Process::write`], and closes standard input behind the bytes.
    pub async fn write_and_close(
        &self,
        bytes: Vec<u8>,
        offset: Option<u64>,
    ) -> Result<Written, WriteError> {
        self.close_by(None, bytes, offset).await
    }

    async fn close_by(
        &self,
        by: Option<KeyboardClient>,
        bytes: Vec<u8>,
        offset: Option<u64>,
    ) -> Result<Written, WriteError> {
        let may_miss_end = self.may_miss_end().await;
        let written = self.write_by(by, bytes, offset, Then::Close).await?;
        if may_miss_end {
            self.see_that_input_ends();
        }
        Ok(written)
    }

    /// The size of its terminal, if it has or had one. After a restart, the one it was launched with.
    pub fn terminal_size(&self) -> Option<WindowSize> {
        self.shared.terminal.get()
    }

    /// Changes the size of its terminal; the foreground group gets SIGWINCH.
    pub async fn resize(&self, size: WindowSize) -> Result<(), ResizeError> {
        self.resize_by(None, size).await
    }

    async fn resize_by(
        &self,
        by: Option<KeyboardClient>,
        size: WindowSize,
    ) -> Result<(), ResizeError> {
        self.may_write(by).map_err(|_| ResizeError::KeyboardTaken)?;
        let resized = self.ask(|reply| Command::Resize { size, reply }).await;
        let resized = resized.unwrap_or(Err(ResizeError::Exited));
        resized.inspect(|()| self.shared.terminal.set(size))
    }

    /// For a program that is about to end: if the output of an ended process is held open, leaves a
    /// small process behind that reads and discards it until its last holder is gone. So late writes
    /// do not fail. Refused before the ending, when each byte belongs to the log.
    pub async fn leave_reader(&self) -> io::Result<()> {
        // An owner that is gone has seen the end of the output.
        self.ask(|reply| Command::LeaveReader { reply }).await.unwrap_or(Ok(()))
    }

    /// How far standard input has come; `None` when it was never open.
    pub fn stdin(&self) -> Option<watch::Receiver<StdinState>> {
        self.shared.stdin.as_ref().map(|gate| gate.state.clone())
    }

    /// What lives of the tree. Looks through all processes, off the runtime.
    pub async fn survivors(&self) -> Vec<Survivor> {
        let tree = self.shared.tree.clone();
        spawn_blocking(move || tree.survivors()).await.unwrap_or_default()
    }

    /// Whether somebody of the tree listens on this TCP port, in whatever network. Looks through
    /// its members off the runtime; a look that fails has found nothing.
    pub async fn listens_on(&self, port: u16) -> PortState {
        let tree = self.shared.tree.clone();
        let look = spawn_blocking(move || tree.listens_on(port)).await;
        look.ok().and_then(Result::ok).unwrap_or(PortState::NotYet)
    }

    /// Whether a process of the tree waits for input. Looks at what they are blocked in, off the
    /// runtime and in turn with other looks.
    pub async fn needs_input(&self) -> InputState {
        let Some(input) = self.input().await else { return InputState::Never };
        self.shared.tree.needs_input(input).await
    }

    /// By this holder of the keyboard, or by another client.
    async fn write_by(
        &self,
        by: Option<KeyboardClient>,
        bytes: Vec<u8>,
        offset: Option<u64>,
        then: Then,
    ) -> Result<Written, WriteError> {
        let gate = self.shared.stdin.as_ref().ok_or(WriteError::NotOpen)?;
        let len = bytes.len();
        let secret = match self.may_write(by) {
            Ok(secret) => secret,
            // Asks how much was accepted.
            Err(_) if len == 0 && then == Then::KeepOpen => false,
            // Also a client without the keyboard hears that an earlier write was accepted.
            Err(error) => return gate.answer_late(offset, len, then).map_err(|_| error),
        };
        let write = |reply| Command::Write(Write { bytes, offset, then, secret, reply });
        match self.ask(write).await {
            // A writer that did not hear that its write was accepted hears it now.
            None | Some(Err(WriteError::Exited)) => gate.answer_late(offset, len, then),
            Some(answer) => answer,
        }
    }

    /// `None` when the owner is gone.
    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (reply, answer) = oneshot::channel();
        self.shared.owner.send(command(reply))?;
        answer.await.ok()
    }
}

/// Reads a log at its own pace. Reading blocks for the time of a file read.
#[derive(Debug)]
pub struct LogReader {
    log: Arc<Reader>,
    live: Live,
}

impl LogReader {
    /// Copies bytes from `at` on, as far as `snapshot` goes.
    pub fn read(&self, snapshot: &Snapshot, at: u64, into: &mut [u8]) -> Result<Piece, ReadError> {
        self.log.read(&snapshot.extent, &self.live, at, into)
    }

    /// As [`LogReader::read`], with the stream of each byte that was copied.
    pub fn read_runs(
        &self,
        snapshot: &Snapshot,
        at: u64,
        into: &mut [u8],
    ) -> Result<(Piece, Vec<Run>), ReadError> {
        self.log.read_runs(&snapshot.extent, &self.live, at, into)
    }

    /// As [`LogReader::read`], with the stamps of the bytes that were copied.
    pub fn read_stamps(
        &self,
        snapshot: &Snapshot,
        at: u64,
        into: &mut [u8],
    ) -> Result<(Piece, Vec<Stamp>), ReadError> {
        self.log.read_stamps(&snapshot.extent, &self.live, at, into)
    }

    /// The stamps of a range, at most so many.
    pub fn stamps(&self, range: Range<u64>, most: usize) -> Result<Stamped, ReadError> {
        self.log.stamps(range, most)
    }

    /// The cursor of the first byte that may have come at this time or later.
    pub fn since(&self, snapshot: &Snapshot, time: SystemTime) -> Result<u64, ReadError> {
        self.log.since(&snapshot.extent, unix_ms(time))
    }
}

#[derive(Debug)]
struct Live(Latest);

impl Horizon for Live {
    fn extent(&self) -> Extent {
        self.0.look(|snapshot| snapshot.extent.clone())
    }
}

#[cfg(test)]
mod tests {
    use lastbyte_testkit::eventually;

    use crate::{Engine, Launch, Settings};

    #[tokio::test(flavor = "multi_thread")]
    async fn what_only_an_owner_needs_goes_with_it() {
        let state = tempfile::tempdir().unwrap();
        let engine = Engine::new(Settings::new(state.path())).unwrap();
        let process = engine.start(Launch::argv(["true"])).await.unwrap().process;
        let ending = process.ended().await;
        eventually("it has no channels", || process.shared.owner.endings().is_none());
        assert_eq!(process.ended().await, ending);
        assert_eq!(process.wait_for(|_| false).await, process.snapshot());
    }
}
