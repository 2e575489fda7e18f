//! The keeper's loop.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

use lastbyte_sys::own_signals::{self, SignalQueue};
use lastbyte_sys::packets;
use lastbyte_sys::registry::Registry;
use lastbyte_sys::untraceable::become_untraceable;
use lastbyte_sys::worker::{Program, Worker};
use lastbyte_sys::{Errno, Signal, Status, adopted, oom, orphans, procfs};
use rustix::event::{PollFd, PollFlags, poll};

use crate::VARIABLE;
use crate::clock::{self, millis};
use crate::machine::{Action, End, Event, LOOK_EVERY, Leaving, Machine, Which};
use crate::message::{Death, Done, LEAVES_FOR_UPGRADE, MOST_BYTES, Said, Welcome};
use crate::slots::Slots;
use crate::stand_ins::StandIns;

/// What a keeper needs.
#[derive(Debug)]
pub struct Setup {
    pub program: Program,
    /// Each with a number that only the worker knows the meaning of.
    pub listeners: Vec<(u8, OwnedFd)>,
    /// Kept open for as long as the keeper lives.
    pub lock: OwnedFd,
}

/// What people or a supervisor may want to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notice {
    /// A worker serves; whether it is the first one.
    Ready {
        first: bool,
    },
    Stopping,
    /// The worker died and is replaced.
    Died(Death),
    /// No worker could be started; the next attempt is after this pause.
    NotStarted {
        errno: Errno,
        pause: Duration,
    },
    /// So many died that the next is started only after this pause.
    Pause {
        deaths: usize,
        pause: Duration,
    },
}

/// A keeper that has no worker yet. Signals wait from now on, and orphans are adopted.
#[derive(Debug)]
pub struct Keeper {
    signals: SignalQueue,
    registry: Registry,
    file: OwnedFd,
    /// The score that this program was started with, if it has another now.
    oom_score: Option<i32>,
}

/// What system services that must not be killed have.
const OOM_SCORE: i32 = -900;

const HEARD: [Signal; 5] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::CHLD];

/// What a shell says of a program that it cannot execute.
const NOT_STARTED: i32 = 126;

/// How often to look at a zombie that waits for its ending to be journalled.
const SOON: Duration = Duration::from_millis(100);

impl Keeper {
    /// For a program with one thread that has no children.
    pub fn new() -> io::Result<Self> {
        own_signals::prepare_for_children();
        let signals = SignalQueue::open(&HEARD)?;
        orphans::adopt()?;
        let (registry, file) = Registry::create()?;
        // Only root may: then the keeper is the last to be killed when memory runs out.
        let before = oom::own().ok();
        let lowered = before.is_some_and(|before| oom::set_own(before.min(OOM_SCORE)).is_ok());
        become_untraceable();
        Ok(Self { signals, registry, file, oom_score: before.filter(|_| lowered) })
    }

    /// Returns when the worker has left on purpose, or the first one cannot be started.
    pub fn keep(self, setup: Setup, tell: impl FnMut(Notice)) -> io::Result<End> {
        let now = clock::now();
        let mut keeping = Keeping {
            slots: Slots::new(self.registry),
            keeper: self,
            setup,
            tell,
            machine: Machine::new(now),
            worker: None,
            stand_ins: StandIns::default(),
            since: millis(now),
            hung: false,
            last_death: None,
            offered: OsString::new(),
            executable: None,
        };
        let end = keeping.until_ended();
        // Nothing of this server is left when it is gone, whatever the reason.
        keeping.stand_ins.finish();
        keeping.slots.look(None, None);
        end
    }
}

struct Keeping<T> {
    keeper: Keeper,
    setup: Setup,
    tell: T,
    machine: Machine,
    worker: Option<Living>,
    stand_ins: StandIns,
    slots: Slots,
    since: u64,
    /// The worker is being killed because it hangs.
    hung: bool,
    last_death: Option<Death>,
    /// The program of the upgrade under way.
    offered: OsString,
    /// What workers execute since the last upgrade; the path of the program is this descriptor's.
    executable: Option<OwnedFd>,
}

/// A worker that was not seen to be dead.
struct Living {
    worker: Worker,
    /// `None` once it has closed its own.
    control: Option<OwnedFd>,
    /// The stand-in's end of its socket, until the worker has it.
    stand_in: Option<OwnedFd>,
    /// The file that it executes. Opened before it is welcome: it may become untraceable later.
    executable: Option<OwnedFd>,
}

impl<T: FnMut(Notice)> Keeping<T> {
    fn until_ended(&mut self) -> io::Result<End> {
        loop {
            if let Some(end) = self.start_if_due()? {
                return Ok(end);
            }
            self.wait();
            let events = self.events();
            for event in events {
                for action in self.machine.on(event, clock::now()) {
                    if let Some(end) = self.act(action)? {
                        return Ok(end);
                    }
                }
            }
            self.stand_ins.forget_gone();
            let worker = self.worker.as_ref().map(|living| living.worker.pid);
            self.slots.look(self.machine.living(), worker);
        }
    }

    fn start_if_due(&mut self) -> io::Result<Option<End>> {
        match self.machine.due(clock::now()) {
            Some(action) => self.act(action),
            None => Ok(None),
        }
    }

    /// Until something happens, or for as long as nothing has to be looked at.
    fn wait(&self) {
        let due = self.machine.next_due(clock::now());
        let due = if self.slots.is_waiting() { due.min(SOON) } else { due };
        let mut descriptors: Vec<BorrowedFd<'_>> = vec![self.keeper.signals.as_fd()];
        if let Some(living) = &self.worker {
            descriptors.push(living.worker.as_fd());
            descriptors.extend(living.control.iter().map(AsFd::as_fd));
        }
        let mut polled: Vec<_> =
            descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        // Everything is looked at afterwards, whatever the answer.
        let polled = poll(&mut polled, due.min(LOOK_EVERY).try_into().ok().as_ref());
        if polled.is_err_and(|errno| errno != Errno::INTR) {
            // The limit of descriptors is lower than what is open, or memory is short.
            _ = poll(&mut [], due.min(SOON).try_into().ok().as_ref());
        }
    }

    /// Everything that has happened, in the order in which the worker did it.
    fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(signal) = self.keeper.signals.next() {
            if signal != Signal::CHLD {
                events.push(Event::Signal(signal));
            }
        }
        let Some(living) = &mut self.worker else { return events };
        // Asked before its messages are read: then a dead one has none left that we miss.
        let death = adopted::reap(living.worker.pid);
        while let Some(said) = next_message(&mut living.control) {
            match said {
                Said::Hello { version } => events.push(Event::Hello { version }),
                Said::Ready => events.push(Event::Ready),
                Said::Stopping => events.push(Event::Stopping),
                Said::Upgrade { path } => {
                    self.offered = path;
                    events.push(Event::UpgradeOffered);
                }
            }
        }
        match death {
            Ok(None) => events.push(self.looked()),
            Ok(Some((status, _))) => events.push(self.died(status, &events)),
            // Somebody else reaped it: there is no such part of this program.
            Err(_) => events.push(self.died(Status::Exited(255), &events)),
        }
        events
    }

    fn looked(&self) -> Event {
        let beat = self.keeper.registry.header().heartbeat.load(Ordering::SeqCst);
        let beat = Duration::from_millis(beat);
        // Asked only of one that is late: it costs a look at /proc.
        let late = clock::now().saturating_sub(beat) > LOOK_EVERY;
        let pid = self.worker.as_ref().map(|living| living.worker.pid);
        // One that cannot be looked at, for want of a descriptor, may be stopped.
        let is_stopped =
            |pid| procfs::read_stat(pid).map_or(true, |stat| matches!(stat.state, b'T' | b't'));
        Event::Looked { beat, stopped: late && pid.is_some_and(is_stopped) }
    }

    /// These have happened before it, and the machine does not know them yet.
    fn died(&mut self, status: Status, before: &[Event]) -> Event {
        self.worker = None;
        let header = self.keeper.registry.header();
        let leaving = match header.leaving.load(Ordering::SeqCst) {
            0 => Leaving::Not,
            LEAVES_FOR_UPGRADE => Leaving::ForUpgrade,
            _ => Leaving::ForGood,
        };
        let hung = std::mem::take(&mut self.hung);
        if leaving == Leaving::Not {
            let undone = self.machine.is_upgrading() && !before.contains(&Event::Ready);
            let death = Death { status, hung, undone, at: millis(clock::now()) };
            self.last_death = Some(death);
            (self.tell)(Notice::Died(death));
        }
        self.slots.adopt();
        self.stand_ins.close_unused(&self.keeper.registry);
        Event::Died { status, leaving }
    }

    fn act(&mut self, action: Action) -> io::Result<Option<End>> {
        match action {
            Action::Start { generation, program } => return self.start(generation, program),
            Action::Welcome { first } => self.welcome(first),
            Action::SayReady { first } => (self.tell)(Notice::Ready { first }),
            Action::SayStopping => self.stopping(),
            Action::SayPause { deaths, pause } => (self.tell)(Notice::Pause { deaths, pause }),
            Action::SayUpgradeKnown => self.answer(Done::Upgrade),
            Action::KeepProgram => self.keep_program(),
            Action::SayHung => self.hung = true,
            Action::Signal(signal) => {
                // A dead one is about to be replaced.
                _ = self.worker.as_ref().map(|living| living.worker.signal(signal));
            }
            Action::End(end) => return Ok(Some(end)),
        }
        Ok(None)
    }

    /// New connections are refused, and the worker goes on when they are.
    fn stopping(&mut self) {
        self.setup.listeners.clear();
        (self.tell)(Notice::Stopping);
        self.answer(Done::Stopping);
    }

    fn answer(&self, done: Done) {
        let control = self.worker.as_ref().and_then(|living| living.control.as_ref());
        // One that is gone needs no answer.
        control.map(|control| packets::send(control, &done.encode(), &[]));
    }

    /// The upgrade is done: workers run the file that this one runs, even if another gets its name,
    /// which may be a version that does not understand us.
    fn keep_program(&mut self) {
        self.executable = self.worker.as_mut().and_then(|living| living.executable.take());
        self.setup.program.path = match &self.executable {
            Some(file) => format!("/proc/self/fd/{}", file.as_raw_fd()).into(),
            None => self.offered.clone(),
        };
    }

    fn start(&mut self, generation: u32, which: Which) -> io::Result<Option<End>> {
        let header = self.keeper.registry.header();
        header.generation.store(generation, Ordering::SeqCst);
        header.leaving.store(0, Ordering::SeqCst);
        header.heartbeat.store(millis(clock::now()), Ordering::SeqCst);
        match self.try_start(generation, which) {
            Ok(living) => self.worker = Some(living),
            // As if it had died at once: the program before it goes on.
            Err(_) if which == Which::Offered => {
                let died = self.died(Status::Exited(NOT_STARTED), &[]);
                self.machine.on(died, clock::now());
            }
            Err(error) if self.machine.is_first() => return Err(error),
            Err(error) => return self.not_started(&error),
        }
        Ok(None)
    }

    fn try_start(&mut self, generation: u32, which: Which) -> io::Result<Living> {
        let (control, theirs) = packets::pair()?;
        let (socket, stand_in) = packets::pair()?;
        let mut program = self.setup.program.clone();
        if which == Which::Offered {
            program.path.clone_from(&self.offered);
        }
        let worker = Worker::start(&program, VARIABLE, theirs.as_fd(), self.keeper.oom_score)?;
        self.stand_ins.add(generation, socket);
        let executable = worker.executable().ok();
        Ok(Living { worker, control: Some(control), stand_in: Some(stand_in), executable })
    }

    /// Everything that runs is kept until there is a worker again.
    fn not_started(&mut self, error: &io::Error) -> io::Result<Option<End>> {
        let actions = self.machine.on(Event::NotStarted, clock::now());
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        (self.tell)(Notice::NotStarted { errno, pause: self.machine.next_due(clock::now()) });
        actions.into_iter().next().map_or(Ok(None), |action| self.act(action))
    }

    /// A worker that cannot be told is dying.
    fn welcome(&mut self, first: bool) {
        let Some(living) = &mut self.worker else { return };
        let (Some(control), Some(stand_in)) = (&living.control, living.stand_in.take()) else {
            return;
        };
        let Some(generation) = self.machine.living() else { return };
        let older: Vec<_> = self.stand_ins.older_than(generation).collect();
        let welcome = Welcome {
            generation,
            keeper: std::process::id().cast_signed(),
            restarts: self.machine.restarts(),
            first,
            since: self.since,
            last_death: self.last_death,
            kinds: self.setup.listeners.iter().map(|(kind, _)| *kind).collect(),
            stand_ins: older.iter().map(|(generation, _)| *generation).collect(),
        };
        let fixed = [self.keeper.file.as_fd(), stand_in.as_fd(), self.setup.lock.as_fd()];
        let listeners = self.setup.listeners.iter().map(|(_, listener)| listener.as_fd());
        let older = older.iter().map(|(_, socket)| socket.as_fd());
        let descriptors: Vec<_> = fixed.into_iter().chain(listeners).chain(older).collect();
        if packets::send(control, &welcome.encode(), &descriptors).is_err() {
            living.worker.signal(Signal::KILL);
        }
    }
}

/// The next message that waits. One that is none is as if it were not there.
fn next_message(control: &mut Option<OwnedFd>) -> Option<Said> {
    loop {
        let mut bytes = [0; MOST_BYTES];
        match packets::receive(control.as_ref()?, &mut bytes, Duration::ZERO) {
            Ok(Some((length, _))) => {
                if let Some(said) = Said::decode(&bytes[..length]) {
                    return Some(said);
                }
            }
            // Nothing waits, or it cannot be had now, for want of descriptors or memory.
            Err(_) => return None,
            Ok(None) => *control = None,
        }
    }
}
