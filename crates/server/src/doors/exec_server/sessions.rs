//! All sessions. One without a connection is stopped after a while.

use std::collections::HashMap;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lastbyte_engine::Engine;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::door::Times;
use super::session::Session;
use crate::doors::rpc::Fault;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Sessions {
    /// Held for a look or a change.
    slots: Arc<Mutex<HashMap<String, Slot>>>,
    times: Times,
    /// How often one was detached.
    detached: Arc<AtomicU64>,
    engine: Engine,
}

#[derive(Debug)]
enum Slot {
    /// Its connection has it.
    Attached,
    /// With a number that no other time without a connection has.
    Detached(Box<Session>, u64),
}

/// A session that a connection has. Detached when it is dropped.
#[derive(Debug)]
pub(super) struct Attached {
    /// Always there before it is dropped.
    session: Option<Box<Session>>,
    sessions: Sessions,
    /// To wait on: this may be dropped outside of a runtime.
    runtime: Handle,
}

impl Sessions {
    pub(super) fn new(engine: Engine, times: Times) -> Self {
        Self { slots: Arc::default(), times, detached: Arc::default(), engine }
    }

    /// A session of its own for a client. Must be called on a runtime, as the next one.
    pub(super) fn create(&self) -> Attached {
        let id = Uuid::new_v4().to_string();
        self.slots().insert(id.clone(), Slot::Attached);
        self.attached(Box::new(Session::new(id, self.engine.clone(), self.times)))
    }

    /// The session with this id, whose client is back.
    pub(super) fn resume(&self, id: &str) -> Result<Attached, Fault> {
        let unknown = || Fault::invalid_request(format!("unknown session id {id}"));
        let taken = || {
            let message = format!("session {id} is already attached to another connection");
            Fault::new(-32010, message)
        };
        let mut slots = self.slots();
        let slot = slots.get_mut(id).ok_or_else(unknown)?;
        match std::mem::replace(slot, Slot::Attached) {
            Slot::Detached(session, _) => Ok(self.attached(session)),
            Slot::Attached => Err(taken()),
        }
    }

    fn attached(&self, session: Box<Session>) -> Attached {
        Attached { session: Some(session), sessions: self.clone(), runtime: Handle::current() }
    }

    /// Keeps it until its client is back, or for a while.
    fn detach(&self, session: Box<Session>, runtime: &Handle) {
        let (id, number) = (session.id.clone(), self.detached.fetch_add(1, Ordering::Relaxed));
        self.slots().insert(id.clone(), Slot::Detached(session, number));
        let (sessions, until) = (self.clone(), Instant::now() + self.times.detached);
        runtime.spawn(async move {
            sleep_until(until).await;
            if let Some(session) = sessions.expire(&id, number) {
                session.stop().await;
            }
        });
    }

    fn expire(&self, id: &str, number: u64) -> Option<Box<Session>> {
        let mut slots = self.slots();
        let is_it = |slot: &Slot| matches!(slot, Slot::Detached(_, other) if *other == number);
        if !slots.get(id).is_some_and(is_it) {
            return None;
        }
        match slots.remove(id)? {
            Slot::Detached(session, _) => Some(session),
            Slot::Attached => None,
        }
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Slot>> {
        // Every change is complete in itself, so a poisoned lock is usable.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.sessions.detach(session, &self.runtime);
        }
    }
}

impl Deref for Attached {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session.as_ref().expect("it is there until this is dropped")
    }
}

impl DerefMut for Attached {
    fn deref_mut(&mut self) -> &mut Session {
        self.session.as_mut().expect("it is there until this is dropped")
    }
}
