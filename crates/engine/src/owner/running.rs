//! The phase in which the leader runs.

use std::time::Duration;

use lastbyte_sys::pty::WindowSize;
use lastbyte_sys::{Child, Exited, Lost, Signal, pipe, pty};
use tokio::time::Instant;

use super::core::Core;
use super::draining::Draining;
use super::exit::Exit;
use super::sampler::Sampler;
use crate::clock::{deadline_after, until};
use crate::launch::{OnTimeout, Resource, Timeouts};
use crate::notes::NotedStop;
use crate::owner::owner_end::{Command, Delivery, OwnerEnd, ResizeError, StopTicket};
use crate::owner::stdin::{StdinQueue, WriteError};
use crate::process::ending::{Cause, Timeout};
use crate::stop::{StopPolicy, Verb, stop};
use crate::tree::InputEnd;

/// The leader is alive, as far as we know.
#[derive(Debug)]
pub(crate) struct Running {
    /// Boxed, as in every phase: the owner's future reserves space for each phase separately.
    pub(crate) core: Box<Core>,
    pub(crate) child: Child,
    pub(crate) exit: Exit,
    pub(crate) stdin: Option<StdinQueue>,
    pub(crate) timers: Timers,
    pub(crate) on_timeout: OnTimeout,
    pub(crate) policy: StopPolicy,
    pub(crate) stopping: Option<Reason>,
    /// When a stop is long overdue. The group is then killed by number, which needs no descriptor
    /// and no scan, so it works even if the stop could do neither.
    pub(crate) backstop: Option<Instant>,
    pub(crate) sampler: Sampler,
    /// When to look whether the terminal can show again what is typed.
    pub(crate) echo_look: Option<Instant>,
}

/// How much longer than its grace a stop may take before the owner kills by number.
const BACKSTOP: Duration = Duration::from_secs(10);

/// How often to look whether a secret was read: the kernel does not report it.
const ECHO_INTERVAL: Duration = Duration::from_millis(20);

/// The same while a secret is in a line that has not ended, which somebody has to type on.
const LINE_INTERVAL: Duration = Duration::from_millis(500);

/// For a command whose grace has passed while no worker was there.
const LEAST_GRACE: Duration = Duration::from_millis(100);

/// Why the tree is being stopped; the first reason stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    TimedOut(Timeout),
    Stopped(Verb),
    Limit(Resource),
}

/// The deadlines. `None` means never, and so does a time past the end of the clock.
#[derive(Debug)]
pub(crate) struct Timers {
    wall: Option<Instant>,
    idle: Option<(Duration, Instant)>,
}

impl Running {
    /// Pumps, answers and watches the timers until the leader has exited.
    pub(super) async fn until_exited(mut self: Box<Self>, owner_end: &mut OwnerEnd) -> Draining {
        loop {
            let wake_at = self.wake_at();
            // Every arm is cancel-safe.
            tokio::select! {
                () = self.exit.changed() => {
                    if let Some(exited) = self.exited() {
                        return self.drain(exited, owner_end);
                    }
                }
                command = owner_end.command() => self.answer(command, owner_end),
                bytes = self.core.pump.step() => self.stored(bytes, owner_end),
                () = step(self.stdin.as_mut()) => {}
                () = until(wake_at) => self.on_time(owner_end),
                which = self.sampler.passed() => self.passed(which),
            }
        }
    }

    /// When there is something to do, if nothing happens before.
    fn wake_at(&self) -> Option<Instant> {
        let (deadline, _) = self.timers.next();
        let others = [self.backstop, self.echo_look, self.core.pump.close_at()];
        others.into_iter().chain([deadline]).flatten().min()
    }

    fn on_time(&mut self, owner_end: &OwnerEnd) {
        let now = Instant::now();
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.core.pump.close_at()) {
            self.core.pump.close_ended();
        }
        if is_due(self.backstop) {
            self.stop_by_number();
        }
        if is_due(self.echo_look) {
            self.restore_echo();
        }
        if is_due(self.timers.next().0) {
            self.expired(owner_end);
        }
    }

    fn stored(&mut self, bytes: usize, owner_end: &OwnerEnd) {
        // The end of a pipe changes nothing.
        if bytes > 0 {
            self.core.publish(owner_end);
            self.restart_idle();
        }
    }

    fn answer(&mut self, command: Command, owner_end: &OwnerEnd) {
        // The callers may have gone away.
        match command {
            // The exit is about to be seen: only the rest of the group counts, and a stop that arrives
            // after the exit did not cause it.
            Command::Signal { .. } | Command::Stopping { .. } if self.has_exited() => {
                self.core.answer_late(command, owner_end);
            }
            Command::Signal { signal, reply } => {
                self.child.signal_group(signal);
                _ = reply.send(Delivery::Group);
            }
            Command::Write(write) => match &mut self.stdin {
                Some(stdin) => {
                    stdin.take(write);
                    if stdin.has_secret() {
                        self.echo_look = Some(Instant::now() + ECHO_INTERVAL);
                    }
                }
                None => _ = write.reply.send(Err(WriteError::NotOpen)),
            },
            Command::Squeeze => self.core.squeeze(owner_end),
            Command::Input { reply } => _ = reply.send(self.input()),
            Command::TypeEnd => self.type_end(),
            Command::SecretInput { on, reply } => {
                let stdin = self.stdin.as_mut();
                _ = reply.send(stdin.map_or(Ok(()), |stdin| stdin.set_secret(on)));
                self.echo_look = (!on).then(Instant::now);
            }
            Command::LeaveReader { .. } => self.core.answer_late(command, owner_end),
            Command::Resize { size, reply } => _ = reply.send(self.resize(size)),
            Command::Stopping { verb, policy, reply } => {
                let hurry = self.stopping.is_some();
                let grace = if hurry { Duration::ZERO } else { policy.grace };
                self.begin_stop(Reason::Stopped(verb), StopPolicy { grace, ..policy });
                _ = reply.send(StopTicket { escalation: self.core.escalation.clone(), hurry });
            }
        }
    }

    fn resize(&self, size: WindowSize) -> Result<(), ResizeError> {
        if size.rows == 0 || size.cols == 0 {
            return Err(ResizeError::Zero);
        }
        let resized = self.core.pump.resize(size).ok_or(ResizeError::NoTerminal)?;
        resized.map_err(ResizeError::Refused)
    }

    /// Lets the terminal show again what is typed, once no secret is on its way.
    fn restore_echo(&mut self) {
        self.echo_look = None;
        let Some(stdin) = &mut self.stdin else { return };
        let terminal = self.core.pump.terminal();
        if stdin.owes_echo() {
            match terminal.map(|(ours, terminal)| (ours, pty::is_all_read(terminal))) {
                Some((_, Ok(false))) => {}
                Some(_) if stdin.has_secret_line() => {}
                Some((ours, Ok(true) | Err(_))) => {
                    // A terminal that is gone shows nothing.
                    _ = pty::show_typing(ours);
                    return stdin.echo_is_back();
                }
                None => return stdin.echo_is_back(),
            }
        }
        if stdin.has_secret() {
            let interval = if stdin.has_secret_line() { LINE_INTERVAL } else { ECHO_INTERVAL };
            self.echo_look = Some(Instant::now() + interval);
        }
    }

    /// Types the end of input once more, after it was typed and read.
    fn type_end(&self) {
        let is_closed = self.stdin.as_ref().is_some_and(|stdin| stdin.end().is_none());
        if let Some((ours, _)) = self.core.pump.terminal().filter(|_| is_closed) {
            // A terminal that takes nothing has a reader that does not wait.
            _ = pty::end_of_file(ours).and_then(|byte| pipe::write(ours, &[byte]));
        }
    }

    /// Its terminal, or its pipe as long as that is open.
    fn input(&self) -> Option<InputEnd> {
        let queued = self.stdin.as_ref().is_some_and(StdinQueue::has_more);
        let mut input = match self.core.pump.terminal() {
            Some((ours, terminal)) => InputEnd::terminal(ours, terminal),
            None => InputEnd::pipe(self.stdin.as_ref()?.end()?),
        }
        .ok()?;
        input.has_unread |= queued;
        Some(input)
    }

    fn restart_idle(&mut self) {
        let now = Instant::now();
        self.timers.restart_idle(now);
        if self.timers.idle.is_some() {
            self.core.notes.note_output(now);
        }
    }

    /// Bytes that are ready, or an exit that has happened, take precedence over the timer.
    fn expired(&mut self, owner_end: &OwnerEnd) {
        if self.core.store_ready(owner_end) > 0 {
            self.restart_idle();
        }
        let (deadline, which) = self.timers.next();
        let still_late = deadline.is_some_and(|deadline| deadline <= Instant::now());
        if still_late && !self.has_exited() {
            owner_end.publish_timed_out(which);
            if self.on_timeout == OnTimeout::Background {
                self.timers = Timers::NEVER;
                return;
            }
            self.begin_stop(Reason::TimedOut(which), self.policy);
            self.go_on_stopping(self.policy);
        }
    }

    /// The tree has passed this limit. One that grows gets no time to grow further.
    fn passed(&mut self, which: Resource) {
        if self.has_exited() {
            return;
        }
        let policy = if which == Resource::CpuTime { self.policy } else { StopPolicy::KILL };
        self.begin_stop(Reason::Limit(which), policy);
        self.go_on_stopping(policy);
    }

    /// Stops the tree in a task of its own.
    fn go_on_stopping(&self, policy: StopPolicy) {
        let (tree, escalation) = (self.core.tree.clone(), self.core.escalation.clone());
        let in_flight = self.core.stops.begin();
        tokio::spawn(async move {
            stop(tree, policy, escalation).await;
            drop(in_flight);
        });
    }

    /// Goes on with a stop that an earlier worker began, with the grace that is left.
    pub(crate) fn resume_stop(&mut self, NotedStop { reason, policy }: NotedStop) {
        let mut policy = policy;
        if policy.signal != Signal::KILL {
            // The signal may not have been sent yet, so it is sent again.
            policy.grace = policy.grace.max(LEAST_GRACE);
        }
        self.begin_stop(reason, policy);
        self.go_on_stopping(policy);
    }

    /// No timer runs any more: the command is being stopped.
    fn begin_stop(&mut self, reason: Reason, policy: StopPolicy) {
        let reason = *self.stopping.get_or_insert(reason);
        self.core.notes.note_stop(reason, policy);
        self.timers = Timers::NEVER;
        self.backstop = Some(deadline_after(policy.grace) + BACKSTOP);
    }

    fn stop_by_number(&mut self) {
        self.backstop = None;
        if !self.has_exited() {
            self.core.escalation.happens();
            self.child.signal_group(Signal::KILL);
        }
    }

    /// How the leader has exited, if it has.
    fn exited(&self) -> Option<Result<Exited, Lost>> {
        self.child.peek().transpose()
    }

    fn has_exited(&self) -> bool {
        self.exited().is_some()
    }

    fn drain(self, exited: Result<Exited, Lost>, owner_end: &OwnerEnd) -> Draining {
        owner_end.publish_draining();
        let cause = self.cause();
        Draining::new(self.core, (self.child, exited), self.exit, cause)
    }

    fn cause(&self) -> Cause {
        let escalated = self.core.escalation.happened();
        match self.stopping {
            None => Cause::Own,
            Some(Reason::TimedOut(which)) => Cause::TimedOut { which, escalated },
            Some(Reason::Stopped(verb)) => Cause::Stopped { verb, escalated },
            Some(Reason::Limit(which)) => Cause::Limit { which, escalated },
        }
    }
}

impl Timers {
    pub(crate) const NEVER: Self = Self { wall: None, idle: None };

    /// For a process that was started then, and whose last output came then.
    pub(crate) fn new(timeouts: Timeouts, started: Instant, last_output: Instant) -> Self {
        let idle = timeouts.idle.and_then(|idle| Some((idle, last_output.checked_add(idle)?)));
        Self { wall: timeouts.wall.and_then(|wall| started.checked_add(wall)), idle }
    }

    /// Those of a process whose timeout may have fired. In the background it runs without. Otherwise
    /// its worker may have been killed before it began the stop, so it fires again, at once.
    pub(crate) fn after(fired: bool, on_timeout: OnTimeout, timers: Self) -> Self {
        if fired && on_timeout == OnTimeout::Background { Self::NEVER } else { timers }
    }

    /// The earlier deadline, and which one it is.
    fn next(&self) -> (Option<Instant>, Timeout) {
        match (self.wall, self.idle) {
            (Some(wall), Some((_, idle))) if idle < wall => (Some(idle), Timeout::Idle),
            (None, Some((_, idle))) => (Some(idle), Timeout::Idle),
            (wall, _) => (wall, Timeout::Wall),
        }
    }

    /// Output arrived: restart the idle timer.
    fn restart_idle(&mut self, now: Instant) {
        self.idle = self.idle.and_then(|(idle, _)| Some((idle, now.checked_add(idle)?)));
    }
}

async fn step(stdin: Option<&mut StdinQueue>) {
    match stdin {
        Some(stdin) => stdin.step().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_that_fired_before_its_stop_began_fires_again() {
        let (started, wall) = (Instant::now(), Duration::from_secs(1));
        let timers = || Timers::new(Timeouts { wall: Some(wall), idle: None }, started, started);
        let deadline = |fired, on_timeout| Timers::after(fired, on_timeout, timers()).next().0;
        assert_eq!(deadline(false, OnTimeout::Stop), Some(started + wall));
        assert_eq!(deadline(false, OnTimeout::Background), Some(started + wall));
        assert_eq!(deadline(true, OnTimeout::Stop), Some(started + wall));
        assert_eq!(deadline(true, OnTimeout::Background), None);
    }
}
