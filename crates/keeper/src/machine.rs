//! What the keeper decides, without a system call: when a worker is started, what it is told, when
//! the keeper ends, and what is done for a slot.
//!
//! A worker is starting until it says that it is ready. One that dies is replaced at once, or after
//! a pause if this happens again and again, or if it cannot be started. One that leaves for an upgrade is followed by a worker
//! of another program; if that one dies before it is ready, the program before it goes on.

use std::time::Duration;

use lastbyte_sys::registry::Leader;
use lastbyte_sys::{Signal, Status};

/// What happens to the keeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The worker asks for everything it needs, in this version of the protocol.
    Hello { version: u32 },
    /// The worker serves.
    Ready,
    /// The worker was asked by a client to stop.
    Stopping,
    /// The keeper got this signal.
    Signal(Signal),
    /// The worker names the program of the next one, in case it leaves for an upgrade.
    UpgradeOffered,
    /// The worker that was due could not be started, for want of something.
    NotStarted,
    /// The worker is dead.
    Died { status: Status, leaving: Leaving },
    /// Time has passed. When the worker last showed that it lives, and whether it is stopped.
    Looked { beat: Duration, stopped: bool },
}

/// Whether a worker that died left on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    Not,
    /// The server ends with it.
    ForGood,
    ForUpgrade,
}

/// Which program a worker runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// The one that has been ready before.
    Current,
    /// The one that the worker before it has named.
    Offered,
}

/// What the keeper does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start the worker of this generation.
    Start {
        generation: u32,
        program: Which,
    },
    /// Give the worker what it asks for. Whether no worker was ready before it.
    Welcome {
        first: bool,
    },
    /// The worker is ready; whether no other was before.
    SayReady {
        first: bool,
    },
    SayStopping,
    /// Tell the worker that its offer is known.
    SayUpgradeKnown,
    /// The offered program is the current one from now on.
    KeepProgram,
    /// Say that the next worker is started after this pause, because so many died.
    SayPause {
        deaths: usize,
        pause: Duration,
    },
    /// Say that the worker is killed because it hangs.
    SayHung,
    Signal(Signal),
    End(End),
}

/// How the keeper ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// As its worker, which left on purpose.
    Left(Status),
    /// The worker could not be started, or died while it was being stopped.
    GaveUp,
}

/// The version of the protocol between keeper and worker.
pub const VERSION: u32 = 1;

/// So many deaths in a row are a crash loop, if no worker had been ready for `STEADY`.
const LOOP: usize = 5;
const STEADY: Duration = Duration::from_secs(1);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A worker that has not shown for so long that it lives is killed.
const HUNG_AFTER: Duration = Duration::from_secs(30);
/// How often to look.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(10);

/// The life of the workers.
#[derive(Debug)]
pub(crate) struct Machine {
    generation: u32,
    worker: Worker,
    was_ready: bool,
    upgrade: Upgrade,
    crashes: u32,
    /// The server is to stop: at this signal, or by a client.
    stop: Option<Signal>,
    /// Deaths in a row of workers that were not ready, or not for long.
    early: usize,
    looked_at: Duration,
    /// From when on the worker can be expected to show that it lives.
    awake_since: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upgrade {
    None,
    /// The worker has named a program.
    Offered,
    /// No worker of that program has been ready yet.
    Trying,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worker {
    /// Dead; the next is started at this time.
    None {
        start_at: Duration,
    },
    Starting,
    Ready {
        since: Duration,
    },
}

impl Machine {
    pub(crate) fn new(now: Duration) -> Self {
        Self {
            generation: 0,
            worker: Worker::None { start_at: now },
            was_ready: false,
            upgrade: Upgrade::None,
            crashes: 0,
            stop: None,
            early: 0,
            looked_at: now,
            awake_since: now,
        }
    }

    /// The worker that lives.
    pub(crate) fn living(&self) -> Option<u32> {
        (!matches!(self.worker, Worker::None { .. })).then_some(self.generation)
    }

    /// How many workers were started in the place of one that crashed.
    pub(crate) fn restarts(&self) -> u32 {
        self.crashes
    }

    /// Whether no worker has been ready yet.
    pub(crate) fn is_first(&self) -> bool {
        !self.was_ready
    }

    /// Whether the worker is the first one of another program, and not ready.
    pub(crate) fn is_upgrading(&self) -> bool {
        self.upgrade == Upgrade::Trying
    }

    /// What is due at this time, whatever happened.
    pub(crate) fn due(&mut self, now: Duration) -> Option<Action> {
        match self.worker {
            Worker::None { start_at } if start_at <= now => {
                self.worker = Worker::Starting;
                self.generation += 1;
                (self.looked_at, self.awake_since) = (now, now);
                let program = if self.is_upgrading() { Which::Offered } else { Which::Current };
                Some(Action::Start { generation: self.generation, program })
            }
            Worker::None { .. } | Worker::Starting | Worker::Ready { .. } => None,
        }
    }

    /// When something is due next.
    pub(crate) fn next_due(&self, now: Duration) -> Duration {
        match self.worker {
            Worker::None { start_at } => start_at.saturating_sub(now),
            Worker::Starting | Worker::Ready { .. } => LOOK_EVERY,
        }
    }

    pub(crate) fn on(&mut self, event: Event, now: Duration) -> Vec<Action> {
        match event {
            Event::Hello { version: VERSION } => {
                vec![Action::Welcome { first: self.is_first() }]
            }
            // It would misread everything. Its death says so.
            Event::Hello { .. } => vec![Action::Signal(Signal::KILL)],
            Event::Ready => self.ready(now),
            Event::Stopping => {
                self.stop.get_or_insert(Signal::TERM);
                vec![Action::SayStopping]
            }
            Event::Signal(signal) => self.signal(signal, now),
            Event::UpgradeOffered => {
                self.upgrade = Upgrade::Offered;
                vec![Action::SayUpgradeKnown]
            }
            Event::NotStarted => self.not_started(now),
            Event::Died { status, leaving: Leaving::ForGood } => {
                vec![Action::End(End::Left(status))]
            }
            Event::Died { leaving: Leaving::ForUpgrade, .. } => self.left_for_upgrade(now),
            Event::Died { leaving: Leaving::Not, .. } => self.died(now),
            Event::Looked { beat, stopped } => self.looked(beat, stopped, now),
        }
    }

    fn ready(&mut self, now: Duration) -> Vec<Action> {
        let first = self.is_first();
        self.worker = Worker::Ready { since: now };
        self.was_ready = true;
        let upgraded = self.is_upgrading().then_some(Action::KeepProgram);
        self.upgrade = Upgrade::None;
        let stop = self.stop.map(Action::Signal);
        upgraded.into_iter().chain([Action::SayReady { first }]).chain(stop).collect()
    }

    /// It is no crash, and what was offered is tried once.
    fn left_for_upgrade(&mut self, now: Duration) -> Vec<Action> {
        if self.upgrade != Upgrade::Offered {
            return self.died(now);
        }
        self.upgrade = Upgrade::Trying;
        self.worker = Worker::None { start_at: now };
        Vec::new()
    }

    /// A worker that is starting does not expect signals yet: the first waits until it is ready. It
    /// may never be: the second does not.
    fn signal(&mut self, signal: Signal, now: Duration) -> Vec<Action> {
        let is_first = self.stop.is_none();
        self.stop.get_or_insert(signal);
        match self.worker {
            Worker::Ready { .. } => vec![Action::Signal(signal)],
            Worker::Starting if is_first => Vec::new(),
            Worker::Starting => vec![Action::Signal(signal)],
            Worker::None { .. } => {
                self.worker = Worker::None { start_at: now };
                Vec::new()
            }
        }
    }

    fn died(&mut self, now: Duration) -> Vec<Action> {
        self.crashes += 1;
        if std::mem::replace(&mut self.upgrade, Upgrade::None) == Upgrade::Trying {
            // The program before it has been ready, so this is no crash loop.
            self.worker = Worker::None { start_at: now };
            return Vec::new();
        }
        let was_starting = self.worker == Worker::Starting;
        if was_starting && self.stop.is_some() {
            return vec![Action::End(End::GaveUp)];
        }
        let steady = matches!(self.worker, Worker::Ready { since } if since + STEADY <= now);
        self.early = if steady { 0 } else { self.early + 1 };
        let deaths = self.early;
        let pause = pause(deaths);
        self.worker = Worker::None { start_at: now + pause };
        let is_loop = !pause.is_zero();
        is_loop.then_some(Action::SayPause { deaths, pause }).into_iter().collect()
    }

    /// It is no crash. What is short may be there again after a pause, which grows as in a crash loop.
    fn not_started(&mut self, now: Duration) -> Vec<Action> {
        if self.stop.is_some() {
            return vec![Action::End(End::GaveUp)];
        }
        self.early = self.early.max(LOOP - 1) + 1;
        self.worker = Worker::None { start_at: now + pause(self.early) };
        Vec::new()
    }

    fn looked(&mut self, beat: Duration, stopped: bool, now: Duration) -> Vec<Action> {
        // If we were stopped ourselves, so was the worker.
        let slept = now.saturating_sub(self.looked_at) > 2 * LOOK_EVERY;
        self.looked_at = now;
        if stopped || slept {
            self.awake_since = now;
        }
        let lives = !matches!(self.worker, Worker::None { .. });
        if lives && now.saturating_sub(beat.max(self.awake_since)) > HUNG_AFTER {
            self.awake_since = now;
            return vec![Action::SayHung, Action::Signal(Signal::KILL)];
        }
        Vec::new()
    }
}

/// How long to wait after so many deaths.
fn pause(deaths: usize) -> Duration {
    match deaths.checked_sub(LOOP) {
        None => Duration::ZERO,
        Some(more) => (FIRST_PAUSE * (1 << more.min(10))).min(LONGEST_PAUSE),
    }
}

/// What the keeper sees of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Of the worker that cloned its leader.
    pub(crate) generation: u32,
    pub(crate) pid: Option<i32>,
    pub(crate) leader: Leader,
    /// Whether the keeper has written how the leader ended.
    pub(crate) exit_is_known: bool,
}

/// What the keeper does for a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Duty {
    None,
    /// Write down how the leader ended, if it has, and leave it a zombie.
    WriteExit,
    /// Remove the zombie, if there is one, and say so.
    Reap,
    /// Say that it is reaped: the number is another's.
    OnlySay,
}

impl Seen {
    /// What is to be done while this worker lives. The others are the slots whose leaders may be
    /// children of the keeper, this one among them.
    pub(crate) fn duty(self, living: Option<u32>, others: &[Self]) -> Duty {
        // A living worker's leaders are its own children.
        if !self.is_adopted(living) {
            return Duty::None;
        }
        match (self.leader, self.pid) {
            (Leader::Reaped, _) | (_, None) => Duty::None,
            (Leader::Kept, Some(_)) if self.exit_is_known => Duty::None,
            (Leader::Kept, Some(_)) => Duty::WriteExit,
            // Its worker may have died after it had reaped it and before it could say so.
            (Leader::Released, Some(pid)) if is_kept(pid, others) => Duty::OnlySay,
            (Leader::Released, Some(_)) => Duty::Reap,
        }
    }

    pub(crate) fn is_adopted(self, living: Option<u32>) -> bool {
        living.is_none_or(|living| self.generation < living)
    }
}

/// Whether the status of the child with this number must be kept.
pub(crate) fn is_kept(pid: i32, slots: &[Seen]) -> bool {
    slots.iter().any(|slot| slot.leader == Leader::Kept && slot.pid == Some(pid))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KILLED: Status = Status::Signalled { signal: Signal::KILL, core_dumped: false };
    const CRASH: Event = Event::Died { status: KILLED, leaving: Leaving::Not };
    const LEFT: Event = Event::Died { status: Status::Exited(0), leaving: Leaving::ForUpgrade };
    const SECOND: Duration = Duration::from_secs(1);

    fn start(generation: u32) -> Option<Action> {
        Some(Action::Start { generation, program: Which::Current })
    }

    fn started() -> Machine {
        let mut machine = Machine::new(SECOND);
        assert_eq!(machine.due(SECOND), start(1));
        assert_eq!(machine.due(SECOND), None);
        machine
    }

    fn ready() -> Machine {
        let mut machine = started();
        let hello = Event::Hello { version: VERSION };
        assert_eq!(machine.on(hello, SECOND), [Action::Welcome { first: true }]);
        assert_eq!(machine.on(Event::Ready, SECOND), [Action::SayReady { first: true }]);
        machine
    }

    #[test]
    fn a_worker_that_dies_is_replaced_at_once() {
        let mut machine = ready();
        assert_eq!(machine.on(CRASH, 60 * SECOND), []);
        assert_eq!((machine.living(), machine.next_due(60 * SECOND)), (None, Duration::ZERO));
        assert_eq!(machine.due(60 * SECOND), start(2));
        let hello = Event::Hello { version: VERSION };
        assert_eq!(machine.on(hello, 60 * SECOND), [Action::Welcome { first: false }]);
        assert_eq!(machine.on(Event::Ready, 60 * SECOND), [Action::SayReady { first: false }]);
        assert_eq!((machine.living(), machine.restarts()), (Some(2), 1));
    }

    #[test]
    fn one_that_leaves_on_purpose_ends_the_keeper_with_its_status() {
        let status = Status::Exited(7);
        let left = ready().on(Event::Died { status, leaving: Leaving::ForGood }, SECOND);
        assert_eq!(left, [Action::End(End::Left(status))]);
    }

    #[test]
    fn deaths_before_ready_make_longer_and_longer_pauses() {
        let mut machine = started();
        let mut now = SECOND;
        let mut pauses = Vec::new();
        for _ in 0..15 {
            machine.on(CRASH, now);
            let pause = machine.next_due(now);
            now += pause;
            assert!(matches!(machine.due(now), Some(Action::Start { .. })));
            pauses.push(pause.as_millis());
        }
        let want = [0, 0, 0, 0, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000, 10000, 10000];
        assert_eq!(pauses, want);
        machine.on(Event::Ready, now);
        machine.on(CRASH, now + 60 * SECOND);
        assert_eq!(machine.next_due(now + 60 * SECOND), Duration::ZERO);
    }

    #[test]
    fn a_worker_that_cannot_be_started_is_tried_again_after_longer_and_longer_pauses() {
        let mut machine = ready();
        let mut now = 60 * SECOND;
        machine.on(CRASH, now);
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert!(matches!(machine.due(now), Some(Action::Start { .. })));
            assert_eq!(machine.on(Event::NotStarted, now), []);
            pauses.push(machine.next_due(now).as_millis());
            now += machine.next_due(now);
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000]);
        assert_eq!((machine.living(), machine.restarts()), (None, 1), "it is no crash");
        machine.on(Event::Signal(Signal::TERM), now);
        machine.due(now);
        assert_eq!(machine.on(Event::NotStarted, now), [Action::End(End::GaveUp)], "not for ever");
    }

    #[test]
    fn a_worker_that_was_ready_for_a_second_is_no_part_of_a_crash_loop() {
        for (lived, want) in [(SECOND, false), (SECOND / 2, true)] {
            let mut machine = ready();
            let mut now = 100 * SECOND;
            machine.on(Event::Ready, now);
            for _ in 0..5 {
                now += lived;
                machine.on(CRASH, now);
                let pause = machine.next_due(now);
                now += pause;
                assert!(machine.due(now).is_some());
                machine.on(Event::Ready, now);
                assert!(pause.is_zero() || want, "{lived:?} {pause:?}");
            }
            machine.on(CRASH, now + lived);
            assert_eq!(machine.next_due(now + lived) > Duration::ZERO, want, "{lived:?}");
        }
    }

    #[test]
    fn signals_are_passed_on_to_a_ready_worker() {
        let mut machine = ready();
        for signal in [Signal::TERM, Signal::INT] {
            assert_eq!(machine.on(Event::Signal(signal), SECOND), [Action::Signal(signal)]);
        }
    }

    #[test]
    fn the_first_signal_waits_for_a_worker_that_is_starting_and_the_second_does_not() {
        let mut machine = started();
        assert_eq!(machine.on(Event::Signal(Signal::TERM), SECOND), []);
        let second = machine.on(Event::Signal(Signal::INT), SECOND);
        assert_eq!(second, [Action::Signal(Signal::INT)]);
        let ready = machine.on(Event::Ready, SECOND);
        assert_eq!(ready, [Action::SayReady { first: true }, Action::Signal(Signal::TERM)]);
    }

    #[test]
    fn a_stop_goes_on_in_the_next_worker() {
        for stop in [Event::Stopping, Event::Signal(Signal::TERM)] {
            let mut machine = ready();
            machine.on(stop, SECOND);
            assert_eq!(machine.on(CRASH, SECOND), []);
            assert_eq!(machine.due(SECOND), start(2));
            let ready = machine.on(Event::Ready, SECOND);
            assert_eq!(ready, [Action::SayReady { first: false }, Action::Signal(Signal::TERM)]);
            machine.on(CRASH, SECOND);
            machine.due(SECOND);
            assert_eq!(machine.on(CRASH, SECOND), [Action::End(End::GaveUp)], "not for ever");
        }
    }

    #[test]
    fn a_signal_ends_a_pause() {
        let mut machine = started();
        for _ in 0..9 {
            machine.on(CRASH, SECOND);
        }
        assert!(machine.next_due(SECOND) > Duration::ZERO);
        machine.on(Event::Signal(Signal::TERM), SECOND);
        assert_eq!(machine.next_due(SECOND), Duration::ZERO);
    }

    #[test]
    fn a_worker_of_another_version_is_killed() {
        let hello = Event::Hello { version: VERSION + 1 };
        assert_eq!(started().on(hello, SECOND), [Action::Signal(Signal::KILL)]);
    }

    #[test]
    fn a_worker_that_hangs_is_killed_and_one_that_is_stopped_is_not() {
        let looked = |machine: &mut Machine, stopped, second: u32| {
            machine.on(Event::Looked { beat: SECOND, stopped }, second * SECOND)
        };
        let mut machine = ready();
        let until_killed = (1..100).find(|second| !looked(&mut machine, false, *second).is_empty());
        assert_eq!(until_killed, Some(32));
        let mut machine = ready();
        assert!((1..100).all(|second| looked(&mut machine, true, second).is_empty()));
        let until_killed =
            (100..200).find(|second| !looked(&mut machine, false, *second).is_empty());
        assert_eq!(until_killed, Some(130), "counted from when it was continued");
    }

    #[test]
    fn a_worker_that_is_stopped_for_seconds_or_hours_goes_on() {
        for seconds in [10, 4 * 3600] {
            let mut machine = ready();
            let stopped = 2 + seconds;
            for second in 2..stopped {
                let looked = Event::Looked { beat: SECOND, stopped: true };
                assert_eq!(machine.on(looked, second * SECOND), [], "{second}");
            }
            // It is continued, and shows that it lives a moment later.
            let looked = Event::Looked { beat: SECOND, stopped: false };
            assert_eq!(machine.on(looked, stopped * SECOND), []);
            let beat = (stopped + 1) * SECOND;
            let looked = Event::Looked { beat, stopped: false };
            assert_eq!(machine.on(looked, beat), []);
            assert_eq!((machine.living(), machine.restarts()), (Some(1), 0));
        }
    }

    #[test]
    fn a_keeper_that_was_stopped_itself_does_not_blame_the_worker() {
        let mut machine = ready();
        assert_eq!(machine.on(Event::Looked { beat: SECOND, stopped: false }, 500 * SECOND), []);
    }

    /// The worker has left for an upgrade, and one of the offered program is starting.
    fn upgrading() -> Machine {
        let mut machine = ready();
        assert_eq!(machine.on(Event::UpgradeOffered, SECOND), [Action::SayUpgradeKnown]);
        assert_eq!(machine.on(LEFT, SECOND), []);
        let offered = Action::Start { generation: 2, program: Which::Offered };
        assert_eq!(machine.due(SECOND), Some(offered));
        machine
    }

    #[test]
    fn an_upgrade_starts_the_offered_program_at_once_and_is_no_crash() {
        let mut machine = upgrading();
        let ready = machine.on(Event::Ready, SECOND);
        assert_eq!(ready, [Action::KeepProgram, Action::SayReady { first: false }]);
        assert_eq!((machine.restarts(), machine.is_upgrading()), (0, false));
    }

    #[test]
    fn an_upgrade_that_fails_goes_back_at_once() {
        let mut machine = upgrading();
        assert_eq!(machine.on(CRASH, SECOND), []);
        assert_eq!((machine.due(SECOND), machine.restarts()), (start(3), 1));
        assert_eq!(machine.on(Event::Ready, SECOND), [Action::SayReady { first: false }]);
        let mut machine = upgrading();
        machine.on(Event::Signal(Signal::TERM), SECOND);
        assert_eq!(machine.on(CRASH, SECOND), [], "what runs is still stopped in order");
        assert_eq!(machine.due(SECOND), start(3));
    }

    #[test]
    fn a_crash_after_an_upgrade_starts_the_upgraded_program() {
        let mut machine = upgrading();
        machine.on(Event::Ready, SECOND);
        assert_eq!(machine.on(CRASH, SECOND), []);
        assert_eq!((machine.due(SECOND), machine.restarts()), (start(3), 1));
    }

    #[test]
    fn a_worker_that_crashes_after_an_offer_or_leaves_without_one_is_replaced_by_its_own_program() {
        for events in [&[Event::UpgradeOffered, CRASH][..], &[LEFT]] {
            let mut machine = ready();
            for event in events {
                machine.on(*event, SECOND);
            }
            assert_eq!((machine.due(SECOND), machine.restarts()), (start(2), 1));
        }
    }

    #[test]
    fn a_living_workers_slots_are_its_own() {
        let seen = Seen { generation: 2, pid: Some(9), leader: Leader::Kept, exit_is_known: false };
        assert_eq!(seen.duty(Some(2), &[seen]), Duty::None);
        assert_eq!(seen.duty(Some(3), &[seen]), Duty::WriteExit);
        assert_eq!(seen.duty(None, &[seen]), Duty::WriteExit);
        assert_eq!(Seen { exit_is_known: true, ..seen }.duty(None, &[seen]), Duty::None);
        assert_eq!(Seen { pid: None, ..seen }.duty(None, &[seen]), Duty::None);
        let released = Seen { leader: Leader::Released, ..seen };
        assert_eq!(released.duty(None, &[released]), Duty::Reap);
        assert_eq!(released.duty(None, &[released, seen]), Duty::OnlySay);
        assert_eq!(Seen { leader: Leader::Reaped, ..seen }.duty(None, &[]), Duty::None);
    }
}
