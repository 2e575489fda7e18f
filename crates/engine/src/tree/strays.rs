//! Who has left a leaf: looked for by the cookie, once for all stops that wait for it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use super::members::Tree;
use super::scan::with_members;

/// The looks of one engine. One goes through all processes, which takes time, so a thousand stops
/// at once must not each take their own.
#[derive(Debug, Default)]
pub(crate) struct Strays {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// For the next look: one that has begun may have passed theirs already.
    waiting: Vec<Question>,
    /// Somebody looks, and will look again as long as anybody waits.
    looking: bool,
}

#[derive(Debug)]
struct Question {
    tree: Tree,
    answer: oneshot::Sender<bool>,
}

impl Strays {
    /// Whether anybody of this tree lives, by a look that begins after the call. A look that fails
    /// finds nobody.
    pub(super) async fn any(self: &Arc<Self>, tree: Tree) -> bool {
        let (answer, answered) = oneshot::channel();
        let first = {
            let mut state = self.state();
            state.waiting.push(Question { tree, answer });
            !std::mem::replace(&mut state.looking, true)
        };
        if first {
            tokio::spawn(look_for(Arc::clone(self)));
        }
        answered.await.unwrap_or(false)
    }

    /// Those who wait; whoever looks stops when there are none.
    fn take(&self) -> Option<Vec<Question>> {
        let mut state = self.state();
        state.looking = !state.waiting.is_empty();
        state.looking.then(|| std::mem::take(&mut state.waiting))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete in itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn look_for(strays: Arc<Strays>) {
    while let Some(questions) = strays.take() {
        let (trees, answers): (Vec<Tree>, Vec<_>) =
            questions.into_iter().map(|Question { tree, answer }| (tree, answer)).unzip();
        let found = spawn_blocking(move || with_members(&trees)).await;
        // Without a look, because it panicked, the answers are dropped: nobody was found.
        for (answer, found) in answers.into_iter().zip(found.into_iter().flatten().flatten()) {
            _ = answer.send(found); // a stop that was dropped does not ask any more
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Waker};

    use super::*;
    use crate::Id;
    use crate::tree::members::Way;

    const NOBODY: i32 = i32::MAX;

    fn tree(number: u128) -> Tree {
        Tree::of_another(NOBODY, Id::from_number(number), Way::Scan)
    }

    fn ask(question: Pin<&mut impl Future<Output = bool>>) -> bool {
        question.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    /// Nothing else runs here until the test waits, so a look is as slow as it can be.
    #[tokio::test]
    async fn whoever_asks_before_a_look_has_begun_is_answered_by_it() {
        let strays = Arc::new(Strays::default());
        let mut questions: Vec<_> = (0..100).map(|n| Box::pin(strays.any(tree(n)))).collect();
        assert!(!questions.iter_mut().any(|question| ask(question.as_mut())));
        let one_look = strays.take().expect("they wait");
        assert_eq!(one_look.len(), questions.len());

        // This one has begun: who asks now may have been passed already.
        let mut late = pin!(strays.any(tree(100)));
        assert!(!ask(late.as_mut()));
        assert_eq!(strays.state().waiting.len(), 1);
        assert!(!late.await, "nobody bears that cookie");
        assert!(strays.take().is_none() && !strays.state().looking);
    }
}
