//! Short blocking work of many stops, on a few threads.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// Two thousand stops that each use `spawn_blocking` make the runtime start 512 threads, which then
/// mostly wait for its one lock. A thread of this queue takes one job after the other.
#[derive(Default)]
pub(crate) struct BlockingQueue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Box<dyn FnOnce() + Send>>,
    threads: usize,
}

/// A job that hangs in the kernel must not hold up all others.
const MOST_THREADS: usize = 4;

impl BlockingQueue {
    /// Runs a function on a blocking thread; `None` if it panicked.
    pub(super) async fn run<R: Send + 'static>(
        self: &Arc<Self>,
        job: impl FnOnce() -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, answered) = oneshot::channel();
        // The stop may have been dropped.
        let job = Box::new(move || _ = answer.send(job()));
        if self.push(job) {
            let queue = Arc::clone(self);
            spawn_blocking(move || queue.run_jobs());
        }
        answered.await.ok()
    }

    /// Whether one more thread is to run jobs.
    fn push(&self, job: Box<dyn FnOnce() + Send>) -> bool {
        let mut state = self.state();
        state.jobs.push_back(job);
        // The others may each be in a long job.
        let is_wanted = state.threads < MOST_THREADS;
        state.threads += usize::from(is_wanted);
        is_wanted
    }

    fn run_jobs(&self) {
        while let Some(job) = self.next() {
            // Its caller is told by the sender that is dropped.
            _ = catch_unwind(AssertUnwindSafe(job));
        }
    }

    /// Without any, the thread is done.
    fn next(&self) -> Option<Box<dyn FnOnce() + Send>> {
        let mut state = self.state();
        let job = state.jobs.pop_front();
        state.threads -= usize::from(job.is_none());
        job
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every update is complete in itself, so a poisoned lock is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for BlockingQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingQueue").field("jobs", &self.state().jobs.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::{Barrier, OnceLock};

    use lastbyte_testkit::eventually;
    use tokio::task::JoinSet;

    #[tokio::test]
    async fn a_thousand_jobs_need_few_threads() {
        let (queue, gate) = (Arc::new(BlockingQueue::default()), Arc::new(OnceLock::new()));
        let mut jobs = JoinSet::new();
        for number in 0..1000 {
            let (queue, gate) = (Arc::clone(&queue), Arc::clone(&gate));
            jobs.spawn(async move { queue.run(move || (*gate.wait(), number)).await });
        }
        let waiting = || queue.state().jobs.len();
        for _ in 0..100_000 {
            if waiting() == 1000 - MOST_THREADS {
                break;
            }
            tokio::task::yield_now().await;
        }
        let waited = waiting();
        // In any case: a test that fails waits for these threads, too.
        gate.set(()).unwrap();
        assert_eq!(waited, 1000 - MOST_THREADS);
        let numbers: HashSet<usize> =
            jobs.join_all().await.into_iter().map(|done| done.expect("no panic").1).collect();
        assert_eq!(numbers.len(), 1000);
        eventually("no thread is left", || queue.state().threads == 0);
    }

    #[tokio::test]
    async fn jobs_run_beside_one_that_takes_long_and_after_one_that_panics() {
        let queue = Arc::new(BlockingQueue::default());
        let (long, short) = (Arc::new(Barrier::new(2)), Arc::clone(&queue));
        let until = Arc::clone(&long);
        let slow = tokio::spawn(async move { short.run(move || _ = until.wait()).await });
        assert_eq!(queue.run(|| panic!("as a test does")).await, None::<()>);
        assert_eq!(queue.run(|| 7).await, Some(7));
        assert_eq!(queue.run(move || _ = long.wait()).await, Some(()));
        slow.await.unwrap();
    }
}
