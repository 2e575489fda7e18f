//! Signals all processes of a tree, including those forked meanwhile.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use lastbyte_sys::Signal;
use lastbyte_sys::cgroup::{Cgroup, read_state};
use lastbyte_sys::procfs::Member;
use lastbyte_sys::readiness::{self, Interest};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{Names, StopPolicy, StopProof, names};
use crate::clock::deadline_after;
use crate::tree::{Caught, ForkChain, Lease, Members, Reach, Target, stats_in};

/// A killed process is gone as soon as it leaves the kernel. One that hangs there (a dead network
/// disk) is reported as left instead of waited for.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// How many consecutive scans may find processes of which none can be signalled. They have just
/// exited. Or, if it happens this often, we may not signal them and retrying is useless.
const MOST_VAIN_SCANS: usize = 3;

/// One stop of one tree.
pub(super) struct Round {
    target: Target,
    signalled: Names,
    /// `None` if a scan misses nothing, or if nothing can be done about it.
    chain: Option<ForkChain>,
}

/// What the last scan found of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Nobody,
    Somebody,
}

impl Round {
    pub(super) fn new(target: Target) -> Self {
        Self { chain: target.fork_chain(), target, signalled: Names::new() }
    }

    /// Sends the stop signal to all processes, followed by CONT, until none is left or the grace
    /// period is over.
    pub(super) async fn ask(&mut self, policy: StopPolicy) -> Left {
        // The grace period starts when the signal is first sent: the scan must not use it up.
        let mut deadline = deadline_after(policy.grace);
        let mut first = true;
        let mut vain_scans = 0;
        loop {
            let pass = match self.signal_all(&[policy.signal, Signal::CONT], deadline).await {
                Ok(pass) => pass,
                Err(left) => return left,
            };
            if std::mem::take(&mut first) {
                deadline = deadline_after(policy.grace);
            }
            match (pass.held.is_empty(), self.target.lease().cloned()) {
                (true, Some(lease)) => return self.cgroup_empties(&lease, deadline).await,
                (true, None) => vain_scans += 1,
                (false, _) => vain_scans = 0,
            }
            if vain_scans == MOST_VAIN_SCANS || !all_gone(pass.held, deadline).await {
                return Left::Somebody;
            }
            if self.target.has_empty_cgroup() {
                return Left::Nobody;
            }
        }
    }

    pub(super) async fn kill(&mut self) -> Left {
        let deadline = Instant::now() + KILL_PATIENCE;
        match self.target.lease().cloned() {
            Some(lease) => self.kill_cgroup(&lease, deadline).await,
            None => self.kill_in_rounds(deadline).await,
        }
    }

    /// The kernel kills all processes in the cgroup at once, which no fork escapes. The ones seen in
    /// the cgroup before are reported.
    async fn kill_cgroup(&mut self, lease: &Arc<Lease>, deadline: Instant) -> Left {
        let _watched = lease.watched();
        let held = Arc::clone(lease);
        let killed = self.target.blocking(move |_| {
            held.with_cgroup(|cgroup| {
                // Processes that cannot be listed are still killed, just not reported.
                let members = names(stats_in(cgroup).unwrap_or_default());
                cgroup.kill()?;
                let events = cgroup.events()?;
                Ok((members, events))
            })
        });
        match killed.await {
            Some(Ok(Some((members, events)))) => {
                self.signalled.extend(members);
                until_empty(events, deadline).await
            }
            Some(Ok(None)) => Left::Nobody,
            // The cgroup could not be read, perhaps for lack of descriptors, so kill the processes
            // one by one.
            Some(Err(_)) | None => self.kill_in_rounds(deadline).await,
        }
    }

    /// Sends KILL in rounds until no process is found. Stops the processes first, so that they
    /// cannot fork while the rest is searched for.
    async fn kill_in_rounds(&mut self, deadline: Instant) -> Left {
        let mut vain_scans = 0;
        while vain_scans < MOST_VAIN_SCANS {
            let stopped = match self.signal_all(&[Signal::STOP], deadline).await {
                Ok(stopped) => stopped,
                Err(left) => return left,
            };
            let pass = self.send(&[Signal::KILL]).await;
            // A member that this scan has missed, or could not search for, must not stay stopped.
            stopped.held.iter().for_each(|member| _ = member.signal(Signal::KILL));
            let Some(pass) = pass else { continue };
            vain_scans = if pass.held.is_empty() && pass.seen > 0 { vain_scans + 1 } else { 0 };
            all_gone(pass.held, deadline).await;
        }
        Left::Somebody
    }

    /// Signals every live member that can be reached, as soon as a scan finds any. Otherwise tells
    /// whether nobody is left, or the deadline has passed.
    async fn signal_all(&mut self, signals: &[Signal], deadline: Instant) -> Result<Members, Left> {
        let mut empty_scans = 0;
        while Instant::now() < deadline {
            match self.send(signals).await {
                Some(pass) if pass.seen > 0 => return Ok(pass),
                Some(_) => empty_scans += 1,
                None => pause().await,
            }
            if empty_scans == self.target.scans_for_proof() {
                return Err(Left::Nobody);
            }
        }
        Err(Left::Somebody)
    }

    /// Signals every live member that can be reached; `None` if the scan failed, perhaps for lack
    /// of descriptors.
    async fn send(&mut self, signals: &[Signal]) -> Option<Members> {
        let (scanned, signals) = (self.target.scan().await?, signals.to_vec());
        let chain = self.chain.take();
        let sent = self.target.blocking(move |target| match target.hold(&scanned) {
            Ok(found) => {
                let (pass, chain) = signal(found, &signals, chain);
                (Some(pass), chain)
            }
            Err(_) => (None, chain),
        });
        let (pass, chain) = sent.await?;
        self.chain = chain;
        let pass = pass?;
        self.signalled.extend(pass.held.iter().map(|it| (it.pid, it.name.clone())));
        Some(pass)
    }

    /// Trusts the last scan, except for a group: processes that left it were not searched for.
    pub(super) async fn proof(self, left: Left) -> StopProof {
        let reach = self.target.reach();
        let left = match (left, reach) {
            (Left::Nobody, Reach::Cgroup | Reach::Scan) => Names::new(),
            (Left::Somebody, _) | (Left::Nobody, Reach::Group) => {
                match self.target.blocking(Target::members).await {
                    Some(Ok(members)) => names(members),
                    // The scan failed, so no process is known to be gone.
                    Some(Err(_)) | None => {
                        let leader = self.target.leader().map(|pid| (pid, String::new()));
                        leader.into_iter().chain(self.signalled.clone()).collect()
                    }
                }
            }
        };
        StopProof::new(self.signalled, left, reach)
    }

    /// The cgroup has processes but none could be signalled. Either they are about to exit, which the
    /// cgroup reports, or we may not signal them. They still get their grace period.
    async fn cgroup_empties(&self, lease: &Arc<Lease>, deadline: Instant) -> Left {
        let _watched = lease.watched();
        let held = Arc::clone(lease);
        match self.target.blocking(move |_| held.with_cgroup(Cgroup::events)).await {
            Some(Ok(Some(events))) => until_empty(events, deadline).await,
            Some(Ok(None)) => Left::Nobody,
            Some(Err(_)) | None => Left::Somebody,
        }
    }
}

/// Signals the members that were found, and those that appear meanwhile. Keeps those that received
/// a signal.
fn signal(
    mut pass: Members,
    signals: &[Signal],
    chain: Option<ForkChain>,
) -> (Members, Option<ForkChain>) {
    let pids: Vec<i32> = pass.held.iter().map(|member| member.pid).collect();
    // A member that dies of the first signal has been reached, too.
    pass.held.retain(|member| signals.iter().filter(|signal| member.signal(**signal)).count() > 0);
    let Some(mut chain) = chain else { return (pass, None) };
    chain.saw(pids);
    match chain.follow(signals) {
        Ok(Caught { appeared, reached }) => {
            pass.seen += appeared.len();
            pass.held.extend(reached);
        }
        // After a failure, the tree must not count as empty.
        Err(_) => pass.seen += 1,
    }
    (pass, Some(chain))
}

/// Waits until the cgroup is empty, or until the deadline.
async fn until_empty(events: OwnedFd, deadline: Instant) -> Left {
    let emptied = async {
        let events = readiness::watch(events, Interest::PRIORITY)?;
        // Read before each wait: the wait then lasts until the next change.
        while read_state(&events)?.populated {
            events.ready(Interest::PRIORITY).await?.clear_ready();
        }
        std::io::Result::Ok(Left::Nobody)
    };
    // If it cannot be watched, the proof checks it.
    timeout_at(deadline, emptied).await.ok().and_then(Result::ok).unwrap_or(Left::Somebody)
}

/// Waits until all of these have exited, one after the other; `false` at the deadline.
async fn all_gone(members: Vec<Member>, deadline: Instant) -> bool {
    let gone = async {
        for member in members {
            match readiness::watch(member, Interest::READABLE) {
                Ok(member) => _ = member.readable().await,
                // It cannot be watched; the next scan finds out whether it is gone.
                Err(_) => pause().await,
            }
        }
    };
    timeout_at(deadline, gone).await.is_ok()
}

/// Waits briefly for a scarce resource to become available.
async fn pause() {
    sleep_until(Instant::now() + Duration::from_millis(10)).await;
}
