//! Looks several times a second whether a tree has passed a limit that the kernel does not enforce.

use std::future::pending;
use std::time::Duration;

use lastbyte_sys::process_usage;
use lastbyte_sys::procfs::Stat;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};

use crate::launch::{EnforcedBy, Resource, Spec};
use crate::tree::{Target, Tree};

/// Between two looks. A look at a large tree takes longer, and then so does the time to the next one.
const INTERVAL: Duration = Duration::from_millis(50);
/// The time between two looks is at least this many times that of a look.
const REST: u32 = 10;

/// The limits of a tree that are sampled.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sampled {
    memory: Option<u64>,
    pids: Option<u64>,
    cpu_time: Option<Duration>,
}

/// Samples until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Sampler(Option<(oneshot::Receiver<Resource>, AbortHandle)>);

impl Sampled {
    fn new(spec: &Spec) -> Self {
        let Some(limited) = &spec.resources else { return Self::default() };
        let is_sampled = |which| limited.by.contains(&(which, EnforcedBy::Sampling));
        Self {
            memory: limited.limits.memory.filter(|_| is_sampled(Resource::Memory)),
            pids: limited.limits.pids.filter(|_| is_sampled(Resource::Pids)),
            // The kernel limits each process, not all of them together.
            cpu_time: limited.limits.cpu_time,
        }
    }

    fn is_empty(&self) -> bool {
        self.memory.is_none() && self.pids.is_none() && self.cpu_time.is_none()
    }

    /// The first limit that these processes have passed together. Blocks.
    fn passed(&self, target: &Target, members: &[Stat]) -> Option<Resource> {
        let threads = || members.iter().map(|stat| stat.threads.max(1)).sum::<u64>();
        if self.pids.is_some_and(|most| threads() > most) {
            return Some(Resource::Pids);
        }
        if self.memory.is_some_and(|most| takes_more(members, most)) {
            return Some(Resource::Memory);
        }
        let used = || target.cpu_time().unwrap_or_else(|| cpu_time(members));
        self.cpu_time.is_some_and(|most| used() >= most).then_some(Resource::CpuTime)
    }
}

impl Sampler {
    /// Begins, if the process has limits that are sampled.
    pub(crate) fn new(spec: &Spec, tree: &Tree) -> Self {
        let sampled = Sampled::new(spec);
        if sampled.is_empty() {
            return Self(None);
        }
        let (passed, told) = oneshot::channel();
        let target = Target::Tree(tree.clone());
        let task = tokio::spawn(async move {
            let which = until_passed(sampled, target).await;
            _ = passed.send(which); // the process may have ended
        });
        Self(Some((told, task.abort_handle())))
    }

    /// Returns when the tree has passed a limit, once. Cancel-safe.
    pub(crate) async fn passed(&mut self) -> Resource {
        if let Some((told, _)) = &mut self.0
            && let Ok(which) = told.await
        {
            self.stop();
            return which;
        }
        pending().await
    }

    pub(crate) fn stop(&mut self) {
        if let Some((_, task)) = self.0.take() {
            task.abort();
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn until_passed(sampled: Sampled, target: Target) -> Resource {
    let mut pause = INTERVAL;
    loop {
        sleep_until(Instant::now() + pause).await;
        let begun = Instant::now();
        if let Some(which) = look(sampled, &target).await {
            return which;
        }
        pause = INTERVAL.max(begun.elapsed() * REST);
    }
}

/// A look that fails shows nothing; the next one may.
async fn look(sampled: Sampled, target: &Target) -> Option<Resource> {
    let scanned = target.scan().await?;
    let look = move |target: &Target| {
        let members = match target.lease() {
            Some(_) => target.members().unwrap_or_default(),
            None => scanned,
        };
        sampled.passed(target, &members)
    };
    target.blocking(look).await.flatten()
}

/// Looks closer, which takes longer, only if the sum says so: it counts pages several times that
/// processes share after a fork.
fn takes_more(members: &[Stat], most: u64) -> bool {
    let sum =
        |of: fn(i32) -> Option<u64>| members.iter().filter_map(|stat| of(stat.pid)).sum::<u64>();
    sum(process_usage::resident) > most && sum(process_usage::share_of_memory) > most
}

fn cpu_time(members: &[Stat]) -> Duration {
    members.iter().filter_map(|stat| process_usage::cpu_time(stat.pid)).sum()
}
