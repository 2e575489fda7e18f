//! How many requests were answered and how fast, by route.
//!
//! A time is taken until the head of the answer is there: an answer without an end counts by its
//! beginning. Whoever asked to wait for a process got its time, not ours: such an answer is counted
//! and its time is left out.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::Response;
use lastbyte_engine::Histogram;

/// The numbers of all routes there are.
#[derive(Debug, Default)]
pub struct Answers {
    /// Added to when a router is made, looked at when somebody asks for the numbers, and left alone
    /// by requests.
    routes: Mutex<Vec<Arc<Answered>>>,
}

/// The numbers of one route.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(super) method: &'static str,
    /// With a name where a path has an id.
    pub(super) path: &'static str,
    promptness: Promptness,
    count: AtomicU64,
    times: Histogram,
}

/// Whether the time that a route takes is the server's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promptness {
    /// Unless an answer says that it [`waited`].
    Prompt,
    /// It is there to wait for processes.
    Waits,
}

/// In the extensions of an answer that has waited.
#[derive(Debug, Clone, Copy)]
struct Waited;

/// Marks an answer whose time was that of a process.
pub(crate) fn waited<B>(mut answer: Response<B>) -> Response<B> {
    answer.extensions_mut().insert(Waited);
    answer
}

impl Answers {
    /// The numbers of this route, the same however often it is asked for.
    pub(crate) fn of(
        &self,
        (method, path): (&'static str, &'static str),
        promptness: Promptness,
    ) -> Arc<Answered> {
        let mut routes = self.lock();
        let known = routes.iter().find(|known| (known.method, known.path) == (method, path));
        if let Some(known) = known {
            return Arc::clone(known);
        }
        let (count, times) = (AtomicU64::new(0), Histogram::default());
        let new = Arc::new(Answered { method, path, promptness, count, times });
        routes.push(Arc::clone(&new));
        new
    }

    pub(super) fn all(&self) -> Vec<Arc<Answered>> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Answered>>> {
        // Only ever pushed to, which a panic leaves whole.
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answered {
    /// The head of an answer is there.
    pub(crate) fn note<B>(&self, answer: &Response<B>, took: Duration) {
        self.count.fetch_add(1, Relaxed);
        if self.times().is_some() && answer.extensions().get::<Waited>().is_none() {
            self.times.note(took);
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }

    /// `None` for a route whose times say nothing of the server.
    pub(super) fn times(&self) -> Option<&Histogram> {
        match self.promptness {
            Promptness::Prompt => Some(&self.times),
            Promptness::Waits => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(answered: &Answered) -> (u64, Option<u64>) {
        (answered.count(), answered.times().map(|times| times.look().count()))
    }

    #[test]
    fn an_answer_that_waited_counts_and_its_time_does_not() {
        let answers = Answers::default();
        let route = answers.of(("GET", "/one"), Promptness::Prompt);
        route.note(&Response::new(()), Duration::ZERO);
        route.note(&waited(Response::new(())), Duration::from_secs(60));
        assert_eq!(count(&route), (2, Some(1)));
        let waits = answers.of(("POST", "/one"), Promptness::Waits);
        waits.note(&Response::new(()), Duration::from_secs(60));
        assert_eq!(count(&waits), (1, None));
    }

    #[test]
    fn a_route_has_its_numbers_once() {
        let answers = Answers::default();
        let first = answers.of(("GET", "/one"), Promptness::Prompt);
        answers.of(("GET", "/two"), Promptness::Prompt);
        assert!(Arc::ptr_eq(&first, &answers.of(("GET", "/one"), Promptness::Prompt)));
        assert_eq!(answers.all().len(), 2);
    }
}
