//! The queue of requests to the spawners.
//!
//! The socket is the queue: it carries the child's ends into the table of the spawner that takes
//! the message, and one message wakes one spawner. The rest of a request stays in memory.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::ends::ChildEnds;
use super::request::{Failure, Request, Step};
use super::socket::{receive, send};

/// The pending requests, by the id in their message.
#[derive(Debug, Default)]
pub(super) struct RequestQueue(Mutex<HashMap<u64, Request>>);

/// A request that a spawner has taken.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) id: u64,
    pub(super) request: Request,
    pub(super) ends: ChildEnds,
}

impl RequestQueue {
    /// Queues a request with copies of the child's ends.
    pub(super) fn send(
        &self,
        socket: BorrowedFd<'_>,
        (id, request): (u64, Request),
        ends: &ChildEnds,
    ) -> Result<(), Failure> {
        self.requests().insert(id, request);
        let sent = send(socket, &id.to_ne_bytes(), &ends.borrowed());
        sent.map_err(|errno| {
            self.requests().remove(&id);
            match errno {
                Errno::PIPE => Failure { step: Step::Clone, errno: Errno::NOTRECOVERABLE },
                errno => Failure { step: Step::Handover, errno },
            }
        })
    }

    /// Waits for the next request; `None` if no more will come. An error carries the id of its
    /// request.
    pub(super) fn next(&self, socket: BorrowedFd<'_>) -> Option<Result<Queued, (u64, Failure)>> {
        loop {
            let (id, ends) = match receive(socket) {
                Ok(Some((id, ends))) => (u64::from_ne_bytes(id), ends),
                Err(Errno::INTR | Errno::NOMEM | Errno::NOBUFS) => continue,
                Ok(None) | Err(_) => return None,
            };
            let Some(request) = self.requests().remove(&id) else { continue };
            let no_room = Failure { step: Step::Handover, errno: Errno::MFILE };
            let ends = ChildEnds::received(ends, request.stdin, request.output);
            let queued = ends.map(|ends| Queued { id, request, ends });
            return Some(queued.ok_or((id, no_room)));
        }
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<u64, Request>> {
        // Every update is complete in itself, so a poisoned lock is usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
