//! How many requests were answered and how fast, by route.
//!
//! The time is measured until the head of the answer, also for answers without an end. Requests that
//! asked to wait for a process are counted without their time, which says nothing of the server.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::Response;
use lastbyte_engine::Histogram;

/// The counts of all routes.
#[derive(Debug, Default)]
pub struct Answers {
    /// Locked when a router is made and when the metrics are read, not by requests.
    routes: Mutex<Vec<Arc<Answered>>>,
}

/// The counts of one route.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(super) method: &'static str,
    /// With a name where a path has an id.
    pub(super) path: &'static str,
    count: AtomicU64,
    /// Of the answers that do not say that they [`waited`]. `None` for a route that is there to wait
    /// for processes.
    pub(super) times: Option<Histogram>,
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
    /// The counts of this route, the same ones for each call.
    pub(crate) fn route(
        &self,
        (method, path): (&'static str, &'static str),
        times: Option<Histogram>,
    ) -> Arc<Answered> {
        let mut routes = self.lock();
        let known = routes.iter().find(|known| (known.method, known.path) == (method, path));
        if let Some(known) = known {
            return Arc::clone(known);
        }
        let new = Arc::new(Answered { method, path, count: AtomicU64::new(0), times });
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
        if let Some(times) = &self.times
            && answer.extensions().get::<Waited>().is_none()
        {
            times.note(took);
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(answered: &Answered) -> (u64, Option<u64>) {
        (answered.count(), answered.times.as_ref().map(|times| times.snapshot().count()))
    }

    #[test]
    fn an_answer_that_waited_counts_and_its_time_does_not() {
        let answers = Answers::default();
        let route = answers.route(("GET", "/one"), Some(Histogram::default()));
        route.note(&Response::new(()), Duration::ZERO);
        route.note(&waited(Response::new(())), Duration::from_secs(60));
        assert_eq!(count(&route), (2, Some(1)));
        let waits = answers.route(("POST", "/one"), None);
        waits.note(&Response::new(()), Duration::from_secs(60));
        assert_eq!(count(&waits), (1, None));
    }

    #[test]
    fn a_route_has_its_numbers_once() {
        let answers = Answers::default();
        let first = answers.route(("GET", "/one"), Some(Histogram::default()));
        answers.route(("GET", "/two"), Some(Histogram::default()));
        assert!(Arc::ptr_eq(&first, &answers.route(("GET", "/one"), Some(Histogram::default()))));
        assert_eq!(answers.all().len(), 2);
    }
}
