//! From the leader's exit to its last byte.
//!
//! When the exit is seen, everything the leader wrote is in the pipes already: one pass that does
//! not wait has it all. Only when somebody else holds a pipe is there anything to wait for.

use std::time::{Duration, SystemTime};

use lastbyte_sys::{Child, Exited, Lost};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use super::core::Core;
use super::ended::Ended;
use super::exit::Exit;
use crate::clock::{deadline_after, until};
use crate::notes::instant_of;
use crate::owner::owner_end::OwnerEnd;
use crate::owner::pump::Drained;
use crate::process::ending::{Cause, Closing, End, Ending, Holders, LostWhy, Status, Times, Usage};
use crate::tree::Reach;

/// The leader has exited and is not reaped, so that signals to its group are safe.
#[derive(Debug)]
pub(crate) struct Draining {
    core: Box<Core>,
    /// With its status, which the kernel keeps until it is reaped.
    child: (Child, Result<Exited, Lost>),
    /// Closed after the ending is published.
    exit: Exit,
    cause: Cause,
    at: (SystemTime, Instant),
}

/// Without a cgroup, the search for holders is the last one in which the leader's number finds its
/// tree. A process that removed the cookie from its environment would be lost.
const LAST_LOOK_PATIENCE: Duration = Duration::from_millis(250);

impl Draining {
    pub(super) fn new(
        core: Box<Core>,
        child: (Child, Result<Exited, Lost>),
        exit: Exit,
        cause: Cause,
    ) -> Self {
        let now = || (SystemTime::now(), Instant::now());
        let at = child.0.exit_told_at().map_or_else(now, |[wall, clock]| {
            (SystemTime::UNIX_EPOCH + Duration::from_nanos(wall), instant_of(clock))
        });
        Self { core, child, exit, cause, at }
    }

    /// Stores the rest of the output, reaps the leader and publishes the ending.
    pub(super) async fn until_ended(mut self, owner_end: &mut OwnerEnd) -> Ended {
        let drained = self.until_drained(owner_end).await;
        self.end(drained, owner_end).await
    }

    async fn until_drained(&mut self, owner_end: &mut OwnerEnd) -> Drained {
        let rule = self.core.drain;
        let limit = self.at.1.checked_add(rule.limit);
        self.core.pump.leader_exited();
        self.core.store_ready(owner_end);
        let mut quiet = Instant::now().checked_add(rule.quiet_window);
        while !self.core.pump.ended() {
            let deadline = quiet.into_iter().chain(limit).min();
            // Every arm is cancel-safe.
            let stored = tokio::select! {
                bytes = self.core.pump.step() => {
                    self.core.publish(owner_end);
                    bytes
                }
                command = owner_end.command() => {
                    self.core.answer_late(command, owner_end);
                    0
                }
                // Ready bytes beat the timer: they restart the quiet window, and at the limit they
                // are the last ones.
                () = until(deadline) => {
                    let late = limit.is_some_and(|limit| limit <= Instant::now());
                    match self.core.store_ready(owner_end) {
                        bytes if bytes > 0 && !late => bytes,
                        _ => break,
                    }
                }
            };
            if stored > 0 {
                quiet = Instant::now().checked_add(rule.quiet_window);
            }
        }
        self.core.pump.finish()
    }

    /// Names the holders, writes the ending down, reaps the leader and publishes the ending, in this
    /// order: whenever this program dies, the status is in the journal or still with the kernel.
    async fn end(self, drained: Drained, owner_end: &mut OwnerEnd) -> Ended {
        let Self { mut core, child: (child, exited), exit, cause, at } = self;
        let drained =
            if core.pump.ended() { drained } else { drained.held_by(holders(&core).await) };
        let (status, usage) = match exited {
            Ok(exited) => {
                let usage = exited.usage.map(|usage| usage_of(usage, &child, &core));
                (exited.status.into(), usage)
            }
            Err(Lost) => (Status::Lost(LostWhy::TakenByOthers), None),
        };
        let cause = match (cause, &core.limits) {
            (Cause::Own, Some(limits)) => limits
                .hit(status, &core.tree)
                .map_or(cause, |which| Cause::Limit { which, escalated: false }),
            (cause, _) => cause,
        };
        let end = End::Seen {
            exited: at.0,
            ended: SystemTime::now(),
            ran: at.1.duration_since(owner_end.started.clock),
            drained: at.1.elapsed(),
        };
        let times = Times { started: owner_end.started.wall, end };
        let ending = Ending::new(status, cause, drained, times).with_usage(usage);
        let log_open = ending.closing != Closing::Eof;
        let short = core.pump.settle();
        short.iter().for_each(|short| core.share.set(short.len()));
        let extent = core.pump.log().extent();
        owner_end.write_down(&ending, &extent, short);
        _ = child.reap(); // its status is known
        core.guard.disarm();
        owner_end.publish_ending(ending, extent, log_open);
        Ended { core, exit: Some(exit) }
    }
}

/// Searches off the runtime, and not for long: the final length is fixed already.
async fn holders(core: &Core) -> Holders {
    let (tree, files) = (core.tree.clone(), core.pump.held_as());
    let patience = match core.tree.reach() {
        Reach::Cgroup => core.drain.holders,
        Reach::Scan | Reach::Group => core.drain.holders.max(LAST_LOOK_PATIENCE),
    };
    let deadline = deadline_after(patience);
    let look = spawn_blocking(move || tree.holders(&files, deadline.into_std()));
    match timeout_at(deadline, look).await {
        Ok(Ok(holders)) => holders,
        Ok(Err(_)) | Err(_) => Holders::Unknown,
    }
}

/// A child that shares its spawner's memory until exec starts with the spawner's peak, so its own
/// is known only where it is higher, or where the tree's cgroup counts it. Nobody knows the peak of a
/// spawner that died with its worker. A tree with limits has a cgroup to itself, which knows better than
/// the leader: it counts every process.
fn usage_of(usage: lastbyte_sys::Usage, child: &Child, core: &Core) -> Usage {
    let lastbyte_sys::Usage { user, system, peak_memory } = usage;
    let tree = &core.tree;
    let is_own = !child.is_taken_over() && lastbyte_sys::exceeds_own_peak(peak_memory);
    let own = is_own.then_some(peak_memory);
    let (oom_killed, forks_refused) = (tree.oom_killed(), tree.forks_refused());
    if core.limits.is_none() {
        let peak_memory = own.or_else(|| tree.peak_memory());
        return Usage { user, system, peak_memory, oom_killed, forks_refused };
    }
    let (user, system) = tree.cpu_time().unwrap_or((user, system));
    let peak_memory = tree.peak_memory().or(own);
    Usage { user, system, peak_memory, oom_killed, forks_refused }
}
