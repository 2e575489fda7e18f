//! The worker's side.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lastbyte_sys::descriptor_limit;
use lastbyte_sys::registry::{Inherited, Place, Purpose, Registry};
use lastbyte_sys::stand_in::{self, Given, MOST_NUMBERS, Question, StandIn};
use lastbyte_sys::{Errno, packets};
use rustix::event::{PollFd, PollFlags, poll};

use crate::clock::{self, millis};
use crate::machine::VERSION;
use crate::message::{Death, Done, LEAVES_FOR_UPGRADE, MOST_BYTES, Said, Welcome};

/// A worker's connection with its keeper.
#[derive(Debug)]
pub struct Joined {
    /// Which worker this is: 1, 2, 3 and so on.
    pub generation: u32,
    pub registry: Registry,
    /// The pid of the keeper.
    pub keeper: i32,
    /// How many workers crashed before this one.
    pub restarts: u32,
    /// No worker was ready before this one.
    pub first: bool,
    /// Since when the keeper runs, in milliseconds of the monotonic clock.
    since: u64,
    pub last_death: Option<Death>,
    control: OwnedFd,
    /// One question at a time.
    asking: Mutex<()>,
    stand_in: Mutex<StandIn>,
    stand_in_socket: RawFd,
    left: Mutex<Left>,
    questions: AtomicU32,
}

/// What the keeper has given, until it is taken.
#[derive(Debug)]
struct Left {
    lock: Option<OwnedFd>,
    listeners: Vec<(u8, OwnedFd)>,
    stand_ins: BTreeMap<u32, OwnedFd>,
}

/// Whether what a worker needs for its successor is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Good,
    /// The stand-in had died; there is another.
    NewStandIn,
    /// The keeper is dead: a crash of this worker loses what runs.
    KeeperGone,
}

/// What a process has open at most if it is no terminal: pipes of its output and input, its log and
/// its leader, rounded up.
const DESCRIPTORS_OF_A_PROCESS: usize = 6;
/// Descriptors to have a place for from the beginning.
const FEWEST_DESCRIPTORS: usize = 4096;

/// How long an answer may take. Only ends a hang.
const PATIENCE: Duration = Duration::from_secs(10);

impl Joined {
    /// Joins the keeper, if there is one; to be called first of all in `main`: the stand-in is a copy
    /// of this process.
    pub fn join_if_worker() -> io::Result<Option<Self>> {
        lastbyte_sys::worker::take_control(crate::VARIABLE)?.map(Self::join).transpose()
    }

    /// Joins the keeper at the other end of this socket.
    pub fn join(control: OwnedFd) -> io::Result<Self> {
        packets::send(&control, &Said::Hello { version: VERSION }.encode(), &[])?;
        let mut bytes = [0; MOST_BYTES];
        let gone = || io::Error::new(io::ErrorKind::BrokenPipe, "the keeper is gone");
        let received = packets::receive(&control, &mut bytes, PATIENCE)?;
        let (length, descriptors) = received.ok_or_else(gone)?;
        let unknown = || io::Error::new(io::ErrorKind::InvalidData, "not a keeper's answer");
        let welcome = Welcome::decode(&bytes[..length]).ok_or_else(unknown)?;
        let mut descriptors = descriptors.into_iter();
        let mut next = || descriptors.next().ok_or_else(unknown);
        let registry = Registry::open(next()?)?;
        let stand_in_socket = stand_in::leave_open(next()?);
        let lock = Some(next()?);
        let listeners = welcome.kinds.iter().map(|kind| Ok((*kind, next()?)));
        let listeners = listeners.collect::<io::Result<_>>()?;
        let stand_ins = welcome.stand_ins.iter().map(|generation| Ok((*generation, next()?)));
        let stand_ins = stand_ins.collect::<io::Result<_>>()?;
        // Before the stand-in shares the table.
        descriptor_limit::raise();
        let used = registry.used().count() * DESCRIPTORS_OF_A_PROCESS;
        descriptor_limit::reserve(FEWEST_DESCRIPTORS + used, &control);
        // Started as /proc/self/exe, it would be called `exe`.
        _ = rustix::thread::set_name(c"lastbyte");
        let joined = Self {
            generation: welcome.generation,
            registry,
            keeper: welcome.keeper,
            restarts: welcome.restarts,
            first: welcome.first,
            since: welcome.since,
            last_death: welcome.last_death,
            control,
            asking: Mutex::new(()),
            stand_in: Mutex::new(StandIn::start(stand_in_socket)?),
            stand_in_socket,
            left: Mutex::new(Left { lock, listeners, stand_ins }),
            questions: AtomicU32::new(0),
        };
        joined.show_life();
        Ok(joined)
    }

    /// The listeners, which the keeper has too. Only the first call gets any.
    pub fn take_listeners(&self) -> Vec<(u8, OwnedFd)> {
        std::mem::take(&mut lock(&self.left).listeners)
    }

    /// The lock of the state directory, which the keeper has too. Only the first call gets it.
    pub fn take_lock(&self) -> Option<OwnedFd> {
        lock(&self.left).lock.take()
    }

    /// What earlier workers have left: every slot that is in use, with copies of its descriptors. To
    /// be called before this worker enters a process of its own. Fails if not everything fits into
    /// this process's table.
    ///
    /// The old stand-ins have it too, until [`Joined::has_taken_over`].
    pub fn copy_descriptors(&self) -> io::Result<Vec<Inherited>> {
        let places: Vec<Place> = self.registry.used().collect();
        let of = |place: &Place| Inherited { place: *place, descriptors: vec![], lost: false };
        let mut inherited: Vec<Inherited> = places.iter().map(of).collect();
        let left = lock(&self.left);
        for (generation, entries) in self.entered(&places) {
            for part in entries.chunks(MOST_NUMBERS) {
                let given = self.fetch(left.stand_ins.get(&generation), part)?;
                for ((index, purpose, _), given) in part.iter().zip(given) {
                    let Inherited { descriptors, lost, .. } = &mut inherited[*index];
                    *lost |= given.is_none();
                    descriptors.extend(given.map(|copy| (*purpose, copy)));
                }
            }
        }
        Ok(inherited)
    }

    /// Everything is entered as this worker's: lets the old stand-ins go.
    pub fn has_taken_over(&self) {
        let stand_ins = std::mem::take(&mut lock(&self.left).stand_ins);
        for socket in stand_ins.values() {
            // One that cannot be told is gone.
            _ = stand_in::ask(socket, self.question(), Question::Go, PATIENCE);
        }
    }

    /// What earlier workers have entered, by generation: the index of its slot, its purpose and its
    /// number in that worker's table.
    fn entered(&self, places: &[Place]) -> BTreeMap<u32, Vec<(usize, Purpose, RawFd)>> {
        let mut entered: BTreeMap<u32, Vec<_>> = BTreeMap::new();
        for (index, place) in places.iter().enumerate() {
            for purpose in Purpose::ALL {
                let Some((generation, number)) = place.descriptor(purpose) else { continue };
                if generation != self.generation {
                    entered.entry(generation).or_default().push((index, purpose, number));
                }
            }
        }
        entered
    }

    /// Copies of these from a stand-in; `None` in the place of each that is lost.
    fn fetch(
        &self,
        stand_in: Option<&OwnedFd>,
        part: &[(usize, Purpose, RawFd)],
    ) -> io::Result<Vec<Option<OwnedFd>>> {
        let numbers: Vec<RawFd> = part.iter().map(|(_, _, number)| *number).collect();
        let lost = || part.iter().map(|_| None).collect();
        let Some(stand_in) = stand_in else { return Ok(lost()) };
        let answer = stand_in::ask(stand_in, self.question(), Question::Give(&numbers), PATIENCE)?;
        let Some(answer) = answer else { return Ok(lost()) };
        let given = answer.given.into_iter().map(|given| match given {
            Given::Copy(copy) => Ok(Some(copy)),
            Given::NotOpen => Ok(None),
            Given::NoRoom => Err(Errno::MFILE.into()),
        });
        given.collect()
    }

    /// This worker serves.
    pub fn ready(&self) -> io::Result<()> {
        Ok(packets::send(&self.control, &Said::Ready.encode(), &[])?)
    }

    /// This worker stops. Returns when the keeper has closed its listeners.
    pub fn stopping(&self) -> io::Result<()> {
        let _asking = lock(&self.asking);
        packets::send(&self.control, &Said::Stopping.encode(), &[])?;
        self.until(Done::Stopping)
    }

    /// This worker is about to exit on purpose: it is not replaced, and the keeper exits as it does.
    pub fn leaving(&self, code: u8) {
        self.registry.header().leaving.store(u32::from(code) + 1, Ordering::SeqCst);
    }

    /// The next worker is to run this program, if this one leaves for it. Returns when the keeper
    /// knows.
    pub fn offer_upgrade(&self, path: &Path) -> io::Result<()> {
        let _asking = lock(&self.asking);
        let message = Said::Upgrade { path: path.into() }.encode();
        if message.len() > MOST_BYTES {
            return Err(Errno::NAMETOOLONG.into());
        }
        packets::send(&self.control, &message, &[])?;
        self.until(Done::Upgrade)
    }

    /// Leaves everything to the next worker, which runs the program that was offered. Does not
    /// return.
    pub fn leave_for_upgrade(&self) -> ! {
        self.registry.header().leaving.store(LEAVES_FOR_UPGRADE, Ordering::SeqCst);
        lastbyte_sys::worker::leave_at_once(0)
    }

    /// Leaves everything to the next worker, because this one cannot take it over. Does not return.
    pub fn leave_to_the_next(&self) -> ! {
        lastbyte_sys::worker::leave_at_once(1)
    }

    /// Until the keeper says so.
    fn until(&self, done: Done) -> io::Result<()> {
        loop {
            let mut bytes = [0; MOST_BYTES];
            let received = packets::receive(&self.control, &mut bytes, PATIENCE)?;
            let (length, _) = received.ok_or(io::ErrorKind::BrokenPipe)?;
            if Done::decode(&bytes[..length]) == Some(done) {
                return Ok(());
            }
        }
    }

    /// To be called once a second: a worker that does not is killed after half a minute. Makes
    /// another stand-in in the place of a dead one.
    pub fn beat(&self) -> io::Result<Health> {
        self.show_life();
        if self.keeper_is_gone() {
            return Ok(Health::KeeperGone);
        }
        let mut stand_in = lock(&self.stand_in);
        if !is_dead(&stand_in) {
            return Ok(Health::Good);
        }
        *stand_in = StandIn::start(self.stand_in_socket)?;
        Ok(Health::NewStandIn)
    }

    fn show_life(&self) {
        self.registry.header().heartbeat.store(millis(clock::now()), Ordering::SeqCst);
    }

    pub fn keeper_is_gone(&self) -> bool {
        packets::is_closed(&self.control)
    }

    /// For how long the keeper has been running.
    pub fn uptime(&self) -> Duration {
        Duration::from_millis(millis(clock::now()).saturating_sub(self.since))
    }

    fn question(&self) -> u64 {
        let count = self.questions.fetch_add(1, Ordering::Relaxed);
        u64::from(self.generation) << 32 | u64::from(count)
    }
}

fn is_dead(stand_in: &StandIn) -> bool {
    let stand_in = stand_in.as_fd();
    let mut polled = [PollFd::new(&stand_in, PollFlags::IN)];
    let now = Duration::ZERO.try_into().ok();
    poll(&mut polled, now.as_ref()).is_ok_and(|ready| ready > 0)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every update is complete in itself, so a poisoned lock is usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
