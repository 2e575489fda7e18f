//! Scans of all processes, each shared by all stops that wait for one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::blocking_queue::BlockingQueue;
use super::census::{Census, TreeView};
use super::marks::Marks;

/// The scans of one engine. A scan takes time for every process on the machine, so a thousand
/// concurrent stops must not each run their own.
#[derive(Debug, Default)]
pub(crate) struct Scans {
    state: Mutex<ScanQueue>,
    /// For what a stop does between scans.
    pub(super) queue: Arc<BlockingQueue>,
    /// For looks at what trees are blocked in: they hold up no stop.
    pub(super) looks: Arc<BlockingQueue>,
}

#[derive(Debug, Default)]
struct ScanQueue {
    /// Requests for the next scan: one that has begun may already have passed their processes.
    waiting: Vec<Question>,
    /// A task is scanning, and repeats as long as requests wait.
    scanning: bool,
}

#[derive(Debug)]
struct Question {
    marks: Arc<Marks>,
    answer: oneshot::Sender<TreeView>,
}

impl Scans {
    /// The live members of this tree, from a scan that begins after the call. `None` if it failed.
    pub(super) async fn scan(self: &Arc<Self>, marks: Arc<Marks>) -> Option<TreeView> {
        let (answer, answered) = oneshot::channel();
        let first = {
            let mut state = self.state();
            state.waiting.push(Question { marks, answer });
            !std::mem::replace(&mut state.scanning, true)
        };
        if first {
            tokio::spawn(run(Arc::clone(self)));
        }
        answered.await.ok()
    }

    /// The waiting requests. Without any, the task ends.
    fn take(&self) -> Option<Vec<Question>> {
        let mut state = self.state();
        state.scanning = !state.waiting.is_empty();
        state.scanning.then(|| std::mem::take(&mut state.waiting))
    }

    fn state(&self) -> MutexGuard<'_, ScanQueue> {
        // Every update is complete in itself, so a poisoned lock is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn run(scans: Arc<Scans>) {
    while let Some(questions) = scans.take() {
        // If the scan fails or panics, the senders are dropped, which tells the receivers.
        _ = spawn_blocking(move || answer(questions)).await;
    }
}

fn answer(questions: Vec<Question>) {
    let asked: Vec<Arc<Marks>> = questions.iter().map(|one| Arc::clone(&one.marks)).collect();
    let Ok(census) = Census::with_appeared(&asked) else { return };
    for Question { marks, answer } in questions {
        _ = answer.send(census.view(&marks)); // the stop may have been dropped
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Waker};

    use super::*;
    use crate::Id;

    const NOBODY: i32 = i32::MAX;

    fn marks(number: u128) -> Arc<Marks> {
        Marks::new(NOBODY, Id::from_number(number), None, None)
    }

    fn ask(question: Pin<&mut impl Future<Output = Option<TreeView>>>) -> bool {
        question.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Nothing else runs here until the test waits, so a scan is as slow as it can be.
    #[tokio::test]
    async fn a_request_before_a_scan_has_begun_is_answered_by_it() {
        let scans = Arc::new(Scans::default());
        let mut questions: Vec<_> = (0..100).map(|n| Box::pin(scans.scan(marks(n)))).collect();
        assert!(!questions.iter_mut().any(|question| ask(question.as_mut())));
        let one_scan = scans.take().expect("they wait");
        assert_eq!(one_scan.len(), questions.len());

        // This scan has begun, so it may already have passed the processes of a later request.
        let mut late = pin!(scans.scan(marks(100)));
        assert!(!ask(late.as_mut()));
        assert_eq!(scans.state().waiting.len(), 1);
        let view = late.await.expect("the scan succeeds");
        assert!(view.members.is_empty(), "no process has that cookie");
        assert!(scans.take().is_none() && !scans.state().scanning);
    }
}
