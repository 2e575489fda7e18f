//! Every order of events for two processes, tried: what keeper, worker, stand-in and kernel do to a
//! slot, with the worker killed between any two of its steps.
//!
//! The keeper's decisions are those of `machine.rs`. The worker's steps and the kernel are modelled
//! here, with pids that are given out again as soon as they are free. Each rule can be broken, and
//! then the check must find it.

use std::collections::{HashSet, VecDeque};

use lastbyte_sys::registry::Leader;

use crate::machine::{Duty, Seen, is_kept};

/// A rule that makes the rest right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// The worker enters a process before it clones its leader.
    EnterBeforeClone,
    /// The worker journals an ending before it releases the leader.
    JournalBeforeRelease,
    /// The worker releases a leader before it reaps it.
    ReleaseBeforeReap,
    /// The worker removes a descriptor from its slot before it closes it.
    RemoveBeforeClose,
    /// The new worker enters a descriptor under its generation before the old stand-in goes.
    EnterBeforeGo,
    /// A new worker journals no ending that is journalled.
    JournalOnce,
    /// A worker takes over a slot once.
    TakeOverOnce,
    /// The keeper does nothing for the slots of a living worker.
    LeaveTheLivingAlone,
    /// The keeper writes a status down and leaves the zombie.
    KeepUntilReleased,
    /// The keeper reaps no released number that is another kept leader's.
    CheckTheNumber,
    /// The keeper reaps no kept leader as an orphan.
    OrphansAreNoLeaders,
    /// The stand-in of a dead worker keeps what is in slots.
    CloseOnlyTheUnused,
}

const RULES: [Rule; 12] = [
    Rule::EnterBeforeClone,
    Rule::JournalBeforeRelease,
    Rule::ReleaseBeforeReap,
    Rule::RemoveBeforeClose,
    Rule::EnterBeforeGo,
    Rule::JournalOnce,
    Rule::TakeOverOnce,
    Rule::LeaveTheLivingAlone,
    Rule::KeepUntilReleased,
    Rule::CheckTheNumber,
    Rule::OrphansAreNoLeaders,
    Rule::CloseOnlyTheUnused,
];

/// How many workers there are before the last one, which is not killed.
const DEATHS: u32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kernel {
    Unborn,
    /// With its parent: a generation, or 0 for the keeper.
    Running(i32, u32),
    Zombie(i32, u32),
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Slot {
    used: bool,
    generation: u32,
    pid: Option<i32>,
    leader: u8,
    /// Which process's status the keeper has written.
    exit: Option<u8>,
    /// The generation that the descriptor is entered under.
    descriptor: Option<u32>,
}

const FREE: Slot =
    Slot { used: false, generation: 0, pid: None, leader: 0, exit: None, descriptor: None };

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is changed by other events")]
struct Process {
    slot: Slot,
    kernel: Kernel,
    /// Which process's status was journalled.
    journal: Option<u8>,
    /// The generation of the worker that has a handle of it.
    owner: u32,
    /// In whose tables the descriptor is open, by generation.
    open: [bool; DEATHS as usize + 2],
    /// Its last byte is not read yet.
    needed: bool,
    /// The worker has removed it from the slot, or closed it, and not done the other.
    half_closed: bool,
    /// A copy that this worker has fetched and not entered yet.
    fetched: bool,
    begun: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    generation: u32,
    /// Whether this worker lives, and has said hello.
    lives: bool,
    /// The keeper has told the stand-in of the dead worker what to keep.
    cut: bool,
    processes: [Process; 2],
}

/// What went wrong.
type Wrong = &'static str;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Enter(usize),
    Clone(usize),
    Exit(usize),
    Journal(usize),
    Mark(usize),
    Reap(usize),
    SayReaped(usize),
    LastByte(usize),
    Remove(usize),
    Close(usize),
    Free(usize),
    Death,
    Cut,
    Hello,
    Fetch(usize),
    EnterFetched(usize),
    Go(usize),
    Keeper(usize),
    Orphans,
}

impl World {
    fn new() -> Self {
        let process = Process {
            slot: FREE,
            kernel: Kernel::Unborn,
            journal: None,
            owner: 0,
            open: [false; DEATHS as usize + 2],
            needed: false,
            half_closed: false,
            fetched: false,
            begun: false,
        };
        Self { generation: 1, lives: true, cut: true, processes: [process; 2] }
    }

    fn seen(&self, index: usize) -> Option<Seen> {
        let Slot { used, generation, pid, leader, exit, .. } = self.processes[index].slot;
        let leader = [Leader::Kept, Leader::Released, Leader::Reaped][usize::from(leader)];
        used.then_some(Seen { generation, pid, leader, exit_is_known: exit.is_some() })
    }

    /// The smallest number that no process has.
    fn free_pid(&self) -> i32 {
        let taken = |pid: i32| {
            self.processes.iter().any(|process| match process.kernel {
                Kernel::Running(of, _) | Kernel::Zombie(of, _) => of == pid,
                Kernel::Unborn | Kernel::Gone => false,
            })
        };
        (1..).find(|pid| !taken(*pid)).unwrap()
    }

    /// The zombie with this number that is a child of this parent.
    fn zombie(&self, pid: i32, parent: u32) -> Option<usize> {
        self.processes.iter().position(|process| process.kernel == Kernel::Zombie(pid, parent))
    }

    /// Does it, if it can happen now.
    fn after(&self, event: Event, broken: Option<Rule>) -> Option<Result<Self, Wrong>> {
        let mut next = self.clone();
        let keeps = |rule| broken != Some(rule);
        let own = self.generation;
        let table = own as usize;
        match event {
            Event::Death => {
                if !self.lives || own > DEATHS {
                    return None;
                }
                next.lives = false;
                next.cut = false;
                for process in &mut next.processes {
                    process.owner = 0;
                    process.half_closed = false;
                    process.fetched = false;
                    match &mut process.kernel {
                        Kernel::Running(_, parent) | Kernel::Zombie(_, parent) => *parent = 0,
                        Kernel::Unborn | Kernel::Gone => {}
                    }
                }
            }
            Event::Cut => {
                if self.lives || self.cut {
                    return None;
                }
                next.cut = true;
                for process in &mut next.processes {
                    for generation in 1..=table {
                        let used = process.slot.descriptor == Some(generation as u32);
                        process.open[generation] &= used && keeps(Rule::CloseOnlyTheUnused);
                    }
                }
            }
            Event::Hello => {
                if self.lives || !self.cut {
                    return None;
                }
                next.generation += 1;
                next.lives = true;
            }
            Event::Orphans => {
                let slots: Vec<Seen> = (0..2).filter_map(|index| self.seen(index)).collect();
                for process in &mut next.processes {
                    if let Kernel::Zombie(pid, 0) = process.kernel
                        && !(is_kept(pid, &slots) && keeps(Rule::OrphansAreNoLeaders))
                    {
                        process.kernel = Kernel::Gone;
                    }
                }
            }
            Event::Exit(index) => {
                let Kernel::Running(pid, parent) = self.processes[index].kernel else {
                    return None;
                };
                next.processes[index].kernel = Kernel::Zombie(pid, parent);
            }
            Event::Keeper(index) => {
                let seen = self.seen(index)?;
                let living = self.lives.then_some(own);
                let living = living.filter(|_| keeps(Rule::LeaveTheLivingAlone));
                let others: Vec<Seen> = (0..2).filter_map(|index| self.seen(index)).collect();
                let others = if keeps(Rule::CheckTheNumber) { &others[..] } else { &[] };
                match seen.duty(living, others) {
                    Duty::None => return None,
                    Duty::WriteExit => {
                        let found = self.zombie(seen.pid?, 0)?;
                        if found != index {
                            return Some(Err("a number was read after its release"));
                        }
                        next.processes[index].slot.exit = Some(found as u8);
                        if !keeps(Rule::KeepUntilReleased) {
                            next.processes[index].kernel = Kernel::Gone;
                        }
                    }
                    Duty::Reap => {
                        if let Some(found) = self.zombie(seen.pid?, 0) {
                            next.processes[found].kernel = Kernel::Gone;
                        }
                        next.processes[index].slot.leader = 2;
                    }
                    Duty::OnlySay => next.processes[index].slot.leader = 2,
                }
            }
            Event::Enter(_)
            | Event::Clone(_)
            | Event::Journal(_)
            | Event::Mark(_)
            | Event::Reap(_)
            | Event::SayReaped(_)
            | Event::LastByte(_)
            | Event::Remove(_)
            | Event::Close(_)
            | Event::Free(_)
            | Event::Fetch(_)
            | Event::EnterFetched(_)
            | Event::Go(_) => {
                if !self.lives {
                    return None;
                }
                match next.work(event, broken) {
                    Some(Ok(())) => {}
                    Some(Err(wrong)) => return Some(Err(wrong)),
                    None => return None,
                }
            }
        }
        (next != *self).then_some(Ok(next))
    }

    /// A step of the living worker.
    fn work(&mut self, event: Event, broken: Option<Rule>) -> Option<Result<(), Wrong>> {
        let keeps = |rule| broken != Some(rule);
        let own = self.generation;
        let table = own as usize;
        let pid = self.free_pid();
        let before = self.clone();
        let taken_over = before.processes.iter().all(|process| {
            !process.slot.used || process.owner == own || process.slot.generation == own
        });
        let of = |index: usize| (index, &before.processes[index]);
        match event {
            Event::Enter(index) => {
                let (_, process) = of(index);
                let late = !keeps(Rule::EnterBeforeClone);
                let is_time = if late { process.kernel != Kernel::Unborn } else { true };
                if process.begun && !late || process.slot.used || !is_time || !taken_over {
                    return None;
                }
                let entered = &mut self.processes[index];
                let pid = match entered.kernel {
                    Kernel::Running(pid, parent) | Kernel::Zombie(pid, parent) if parent == own => {
                        Some(pid)
                    }
                    Kernel::Unborn => None,
                    _ => return None,
                };
                let descriptor = Some(own);
                entered.slot = Slot { used: true, generation: own, pid, descriptor, ..FREE };
                entered.open[table] = true;
                entered.owner = own;
                entered.begun = true;
                entered.needed = true;
            }
            Event::Clone(index) => {
                let (_, process) = of(index);
                let is_entered =
                    process.slot.used && process.owner == own && process.slot.generation == own
                        || !keeps(Rule::EnterBeforeClone) && taken_over;
                if !is_entered || process.kernel != Kernel::Unborn || process.slot.pid.is_some() {
                    return None;
                }
                self.processes[index].kernel = Kernel::Running(pid, own);
                if process.slot.used {
                    self.processes[index].slot.pid = Some(pid);
                }
            }
            Event::LastByte(index) => {
                let (_, process) = of(index);
                let ended = matches!(process.kernel, Kernel::Zombie(..) | Kernel::Gone);
                if !ended || process.owner != own || process.slot.descriptor != Some(own) {
                    return None;
                }
                self.processes[index].needed = false;
            }
            Event::Journal(index) => {
                let (_, process) = of(index);
                let is_own = process.slot.generation == own;
                if process.owner != own || process.slot.leader != 0 || process.needed {
                    return None;
                }
                if process.journal.is_some() && keeps(Rule::JournalOnce) {
                    return None;
                }
                let number = process.slot.pid?;
                let is_zombie = process.kernel == Kernel::Zombie(number, own);
                let status = if is_own && is_zombie { index as u8 } else { process.slot.exit? };
                if process.journal.is_some() {
                    return Some(Err("an ending was journalled twice"));
                }
                self.processes[index].journal = Some(status);
            }
            Event::Mark(index) => {
                let (_, process) = of(index);
                let can = process.journal.is_some() || !keeps(Rule::JournalBeforeRelease);
                let exited = process.slot.exit.is_some()
                    || process.slot.pid.is_some_and(|pid| before.zombie(pid, own).is_some())
                    || process.journal.is_some();
                if process.owner != own || process.slot.leader != 0 || !can || !exited {
                    return None;
                }
                self.processes[index].slot.leader = 1;
            }
            Event::Reap(index) => {
                let (_, process) = of(index);
                let released = process.slot.leader == 1
                    || !keeps(Rule::ReleaseBeforeReap) && process.journal.is_some();
                // A worker has its own children by a descriptor, not by number.
                if process.owner != own
                    || !released
                    || !matches!(process.kernel, Kernel::Zombie(_, of) if of == own)
                {
                    return None;
                }
                self.processes[index].kernel = Kernel::Gone;
            }
            Event::SayReaped(index) => {
                let (_, process) = of(index);
                let is_own = process.owner == own && process.slot.generation == own;
                if !is_own || process.kernel != Kernel::Gone || process.slot.leader == 2 {
                    return None;
                }
                self.processes[index].slot.leader = 2;
            }
            Event::Remove(index) => {
                let (_, process) = of(index);
                let is_second = !keeps(Rule::RemoveBeforeClose);
                if process.owner != own || process.needed || process.slot.descriptor != Some(own) {
                    return None;
                }
                if is_second && process.open[table] {
                    return None;
                }
                self.processes[index].slot.descriptor = None;
                self.processes[index].half_closed = !is_second;
            }
            Event::Close(index) => {
                let (_, process) = of(index);
                let can = process.half_closed || !keeps(Rule::RemoveBeforeClose) && !process.needed;
                if process.owner != own || !can {
                    return None;
                }
                self.processes[index].open[table] = false;
                self.processes[index].half_closed = false;
            }
            Event::Free(index) => {
                let (_, process) = of(index);
                let unborn = process.slot.pid.is_none() && process.slot.generation != own;
                let is_over = process.slot.leader == 2 || unborn;
                if process.owner != own || !is_over || process.half_closed {
                    return None;
                }
                if process.slot.descriptor.is_some() && !unborn || !process.slot.used {
                    return None;
                }
                let freed = &mut self.processes[index];
                freed.slot = FREE;
                freed.owner = 0;
                freed.needed = false;
                freed.open[table] = false;
            }
            Event::Fetch(index) => {
                let (_, process) = of(index);
                let is_left = process.slot.used && process.slot.generation != own;
                let again = process.owner == own;
                if !is_left || process.fetched || again && keeps(Rule::TakeOverOnce) {
                    return None;
                }
                if again {
                    return Some(Err("a slot was taken over twice"));
                }
                let taking = &mut self.processes[index];
                match process.slot.descriptor {
                    None => taking.owner = own,
                    Some(generation) => {
                        if !process.open[generation as usize] {
                            return Some(Err("a descriptor in a slot is not open"));
                        }
                        taking.open[table] = true;
                        taking.fetched = true;
                    }
                }
            }
            Event::EnterFetched(index) => {
                if !of(index).1.fetched {
                    return None;
                }
                let taking = &mut self.processes[index];
                taking.slot.descriptor = Some(own);
                taking.fetched = false;
                taking.owner = own;
            }
            Event::Go(_) => {
                let (all_entered, early) = (taken_over, !keeps(Rule::EnterBeforeGo));
                let fetched = before
                    .processes
                    .iter()
                    .all(|process| !process.slot.used || process.owner == own || process.fetched);
                if !(all_entered || early && fetched) {
                    return None;
                }
                for process in &mut self.processes {
                    process.open[..table].fill(false);
                }
            }
            Event::Death
            | Event::Cut
            | Event::Hello
            | Event::Exit(_)
            | Event::Keeper(_)
            | Event::Orphans => return None,
        }
        Some(Ok(()))
    }

    /// What must be true at any time.
    fn check(&self) -> Result<(), Wrong> {
        for (index, process) in self.processes.iter().enumerate() {
            let Process { slot, kernel, journal, needed, .. } = *process;
            if let Kernel::Running(pid, _) | Kernel::Zombie(pid, _) = kernel
                && !(slot.used && slot.pid == Some(pid))
            {
                return Err("a leader is in no slot");
            }
            if kernel == Kernel::Gone && journal != Some(index as u8) {
                return Err("a status was lost");
            }
            if journal.is_some_and(|of| usize::from(of) != index)
                || slot.exit.is_some_and(|of| usize::from(of) != index)
            {
                return Err("another process's status was taken");
            }
            let is_entered = |generation: u32| process.open[generation as usize];
            if needed && !slot.descriptor.is_some_and(is_entered) {
                return Err("a descriptor in use is in no slot");
            }
            if slot.descriptor.is_some_and(|generation| !is_entered(generation)) {
                return Err("a number is in a slot after it was closed");
            }
        }
        Ok(())
    }
}

fn events() -> Vec<Event> {
    let of_one: [fn(usize) -> Event; 14] = [
        Event::Enter,
        Event::Clone,
        Event::Exit,
        Event::Journal,
        Event::Mark,
        Event::Reap,
        Event::SayReaped,
        Event::LastByte,
        Event::Remove,
        Event::Close,
        Event::Free,
        Event::Fetch,
        Event::EnterFetched,
        Event::Keeper,
    ];
    let both = of_one.into_iter().flat_map(|event| [event(0), event(1)]);
    both.chain([Event::Death, Event::Cut, Event::Hello, Event::Orphans, Event::Go(0)]).collect()
}

/// What was tried: states, the most events in a row, and in how many states all was done.
#[derive(Debug)]
struct Tried {
    states: usize,
    events: usize,
    done: usize,
}

/// Tries every order. Fails with the events that lead to something wrong.
fn try_all(broken: Option<Rule>) -> Result<Tried, (Wrong, usize)> {
    let events = events();
    let mut known = HashSet::from([World::new()]);
    let mut waiting = VecDeque::from([(World::new(), 0)]);
    let mut tried = Tried { states: 0, events: 0, done: 0 };
    while let Some((world, length)) = waiting.pop_front() {
        tried.states += 1;
        tried.events = tried.events.max(length);
        let is_done = |process: &Process| process.begun && !process.slot.used;
        tried.done += usize::from(world.processes.iter().all(is_done));
        for event in &events {
            let Some(next) = world.after(*event, broken) else { continue };
            let next = next.and_then(|next| next.check().map(|()| next));
            let next = next.map_err(|wrong| (wrong, length + 1))?;
            if known.insert(next.clone()) {
                waiting.push_back((next, length + 1));
            }
        }
    }
    Ok(tried)
}

#[test]
fn whatever_the_order_nothing_is_lost_and_nothing_taken_twice() {
    let tried = try_all(None).unwrap();
    println!("{tried:?}");
    assert!(tried.events >= 12 && tried.done > 0, "{tried:?}");
}

#[test]
fn each_broken_rule_is_found() {
    for rule in RULES {
        let found = try_all(Some(rule)).expect_err(&format!("{rule:?} can be broken unseen"));
        println!("{rule:?}: {} after {} events", found.0, found.1);
    }
}
