//! While the leader runs.

use std::time::Duration;

use lastbyte_sys::pty::WindowSize;
use lastbyte_sys::{Child, ExitWatch, Lost, Signal};
use tokio::io::unix::AsyncFd;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::core::{Core, signal_survivors};
use super::draining::Draining;
use crate::clock::{deadline_after, until};
use crate::desk::{Command, Delivery, Desk, ResizeError, StopTicket};
use crate::ending::{Cause, Timeout};
use crate::launch::{OnTimeout, Timeouts};
use crate::stdin::{StdinQueue, WriteError};
use crate::stop::{Escalation, StopPolicy, Verb, stop};

/// The leader is alive, as far as we know.
#[derive(Debug)]
pub(crate) struct Running {
    /// Boxed, as in every phase: the owner's future has room for each phase, one beside the other.
    pub(crate) core: Box<Core>,
    pub(crate) child: Child,
    pub(crate) exit: AsyncFd<ExitWatch>,
    pub(crate) stdin: Option<StdinQueue>,
    pub(crate) timers: Timers,
    pub(crate) on_timeout: OnTimeout,
    pub(crate) policy: StopPolicy,
    pub(crate) stopping: Option<Reason>,
    /// When a stop should have been over long ago: the group is then killed by number, which takes
    /// no descriptor and no look, so that a stop that could do neither does not fail.
    pub(crate) backstop: Option<Instant>,
}

/// How much longer than its grace a stop may take before the owner kills by number.
const BACKSTOP: Duration = Duration::from_secs(10);

/// Why the tree is being stopped; the first reason stays.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reason {
    TimedOut(Timeout),
    Stopped(Verb),
}

/// When it is too late. `None` is never, which a time past the end of the clock is, too.
#[derive(Debug)]
pub(crate) struct Timers {
    wall: Option<Instant>,
    idle: Option<(Duration, Instant)>,
}

enum Event {
    ChildReady,
    Stored(usize),
    Command(Command),
    Timer,
    Backstop,
    StdinMoved,
}

impl Running {
    /// Pumps, answers and watches the clock until the leader has exited.
    pub(super) async fn until_exited(mut self, desk: &mut Desk) -> Draining {
        loop {
            match self.next(desk).await {
                Event::ChildReady => match self.child.peek() {
                    Ok(None) => {}
                    Ok(Some(_)) | Err(Lost) => return self.exited(desk),
                },
                Event::Stored(bytes) => self.stored(bytes, desk),
                Event::Command(command) => self.answer(command, desk),
                Event::Timer => self.expired(desk),
                Event::Backstop => self.stop_by_number(),
                Event::StdinMoved => {}
            }
        }
    }

    /// Every arm is cancel-safe.
    async fn next(&mut self, desk: &mut Desk) -> Event {
        let (deadline, _) = self.timers.next();
        tokio::select! {
            ready = self.exit.readable() => {
                // Cleared before it is judged: a pidfd stays ready once it is.
                if let Ok(mut ready) = ready { ready.clear_ready(); }
                Event::ChildReady
            }
            command = desk.command() => Event::Command(command),
            bytes = self.core.pump.step() => Event::Stored(bytes),
            () = step(self.stdin.as_mut()) => Event::StdinMoved,
            () = until(deadline) => Event::Timer,
            () = until(self.backstop) => Event::Backstop,
        }
    }

    fn stored(&mut self, bytes: usize, desk: &Desk) {
        // A pipe that came to its end has nothing to tell.
        if bytes > 0 {
            self.core.publish(desk);
            self.heard(bytes);
        }
    }

    fn heard(&mut self, bytes: usize) {
        if bytes > 0 {
            self.timers.heard_from(Instant::now());
        }
    }

    fn answer(&mut self, command: Command, desk: &Desk) {
        // Callers that went away do not need their replies.
        match command {
            Command::Signal { signal, reply } => self.signal(signal, reply),
            Command::Write(write) => match &mut self.stdin {
                Some(stdin) => stdin.take(*write),
                None => _ = write.reply.send(Err(WriteError::NotOpen)),
            },
            Command::Squeeze => self.core.squeeze(desk),
            Command::Resize { size, reply } => _ = reply.send(self.resize(size)),
            // Who comes after the exit did not cause it.
            Command::Stopping { reply, .. } if self.exit_is_there() => {
                _ = reply.send(StopTicket { escalation: Escalation::default(), hurry: false });
            }
            Command::Stopping { verb, grace, reply } => {
                let hurry = self.stopping.is_some();
                let grace = if hurry { Duration::ZERO } else { grace };
                self.begin_stop(Reason::Stopped(verb), grace);
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

    fn signal(&self, signal: Signal, reply: oneshot::Sender<Delivery>) {
        if !self.exit_is_there() {
            self.child.signal_group(signal);
            _ = reply.send(Delivery::Group);
        } else {
            // It has exited and we are about to see it: whoever is left of the group counts.
            let tree = self.core.tree.clone();
            tokio::task::spawn_blocking(move || _ = reply.send(signal_survivors(&tree, signal)));
        }
    }

    /// Bytes that lie ready and an exit that is already there beat the timer.
    fn expired(&mut self, desk: &Desk) {
        let bytes = self.core.store_ready(desk);
        self.heard(bytes);
        let (deadline, which) = self.timers.next();
        let still_late = deadline.is_some_and(|deadline| deadline <= Instant::now());
        if still_late && !self.exit_is_there() {
            desk.publish_timed_out(which);
            if self.on_timeout == OnTimeout::Background {
                self.timers = Timers::NEVER;
                return;
            }
            self.begin_stop(Reason::TimedOut(which), self.policy.grace);
            let (tree, escalation) = (self.core.tree.clone(), self.core.escalation.clone());
            let (policy, under_way) = (self.policy, self.core.stops.begin());
            tokio::spawn(async move {
                stop(tree, policy, escalation).await;
                drop(under_way);
            });
        }
    }

    /// From now on no timer runs: the command is on its way out.
    fn begin_stop(&mut self, reason: Reason, grace: Duration) {
        self.stopping.get_or_insert(reason);
        self.timers = Timers::NEVER;
        self.backstop = Some(deadline_after(grace) + BACKSTOP);
    }

    fn stop_by_number(&mut self) {
        self.backstop = None;
        if !self.exit_is_there() {
            self.core.escalation.happens();
            self.child.signal_group(Signal::KILL);
        }
    }

    fn exit_is_there(&self) -> bool {
        !matches!(self.child.peek(), Ok(None))
    }

    fn exited(self, desk: &Desk) -> Draining {
        desk.publish_draining();
        let cause = self.cause();
        Draining::new(self.core, self.child, self.exit, cause)
    }

    fn cause(&self) -> Cause {
        let escalated = self.core.escalation.happened();
        match self.stopping {
            None => Cause::Own,
            Some(Reason::TimedOut(which)) => Cause::TimedOut { which, escalated },
            Some(Reason::Stopped(verb)) => Cause::Stopped { verb, escalated },
        }
    }
}

impl Timers {
    const NEVER: Self = Self { wall: None, idle: None };

    pub(crate) fn new(timeouts: Timeouts, started: Instant) -> Self {
        let idle = timeouts.idle.and_then(|idle| Some((idle, started.checked_add(idle)?)));
        Self { wall: timeouts.wall.and_then(|wall| started.checked_add(wall)), idle }
    }

    /// The earlier of the two, and which it is.
    fn next(&self) -> (Option<Instant>, Timeout) {
        match (self.wall, self.idle) {
            (Some(wall), Some((_, idle))) if idle < wall => (Some(idle), Timeout::Idle),
            (None, Some((_, idle))) => (Some(idle), Timeout::Idle),
            (wall, _) => (wall, Timeout::Wall),
        }
    }

    /// Output came: the idle clock starts again.
    fn heard_from(&mut self, now: Instant) {
        self.idle = self.idle.and_then(|(idle, _)| Some((idle, now.checked_add(idle)?)));
    }
}

async fn step(stdin: Option<&mut StdinQueue>) {
    match stdin {
        Some(stdin) => stdin.step().await,
        None => std::future::pending().await,
    }
}
