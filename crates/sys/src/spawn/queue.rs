//! Requests on their way to whichever spawner is free.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::request::Request;

/// One request wakes one spawner. With a channel behind a lock the one that takes a request would
/// wake the next to wait in its place, on the core that the child could have.
#[derive(Debug, Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Unbounded: a request waits here only while its caller waits for the answer.
    requests: VecDeque<(u64, Request)>,
    closed: bool,
    spawners: usize,
}

/// The callers' end. Dropped, it lets the spawners go.
#[derive(Debug, Default)]
pub(super) struct Requests(Arc<Queue>);

/// A spawner's end.
#[derive(Debug)]
pub(super) struct Orders(Arc<Queue>);

impl Requests {
    /// An end for one more spawner.
    pub(super) fn orders(&self) -> Orders {
        self.0.state().spawners += 1;
        Orders(Arc::clone(&self.0))
    }

    /// `false` when there is no spawner left to take it.
    pub(super) fn submit(&self, id: u64, request: Request) -> bool {
        {
            let mut state = self.0.state();
            if state.spawners == 0 {
                return false;
            }
            state.requests.push_back((id, request));
        }
        self.0.changed.notify_one();
        true
    }
}

impl Orders {
    /// Waits for the next; `None` when no more will come.
    pub(super) fn next(&self) -> Option<(u64, Request)> {
        let mut state = self.0.state();
        loop {
            if let Some(next) = state.requests.pop_front() {
                return Some(next);
            }
            if state.closed {
                return None;
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is complete in itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.changed.notify_all();
    }
}

impl Drop for Orders {
    fn drop(&mut self) {
        self.0.state().spawners -= 1;
    }
}
