//! The spawners' answers. That of a started leader carries its pidfd.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::messages::Exchange;
use super::request::Failure;
use crate::{Child, leaders};

/// The receiving end, in the program's descriptor table.
#[derive(Debug)]
pub struct Answers {
    pub(super) socket: Arc<OwnedFd>,
    pub(super) exchange: Arc<Exchange>,
}

/// The outcome of the request with this id.
#[derive(Debug)]
pub struct Answer {
    pub id: u64,
    pub result: Result<Spawned, Failure>,
}

/// A leader that has executed its program.
#[derive(Debug)]
pub enum Spawned {
    Held(Child),
    /// This program has no free descriptor for its pidfd at the moment.
    Unheld(Unheld),
    /// Another part of this program reaped it before its pidfd was opened.
    Lost,
}

/// A leader without a pidfd. Its pid is not reused until it is reaped. Dropping this kills and
/// reaps it.
#[derive(Debug)]
pub struct Unheld {
    /// `None` once it is held.
    pid: Option<Pid>,
}

impl Unheld {
    /// Tries to open its pidfd.
    pub fn hold(mut self) -> Spawned {
        let Some(pid) = self.pid else { return Spawned::Lost };
        let opened = pidfd_open(pid, PidfdFlags::empty());
        if let Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) = opened {
            return Spawned::Unheld(self);
        }
        self.pid = None;
        match opened {
            Ok(pidfd) => Spawned::Held(Child::new(pid, pidfd)),
            Err(_) => {
                leaders::reaped(pid);
                Spawned::Lost
            }
        }
    }
}

impl Drop for Unheld {
    fn drop(&mut self) {
        self.pid.into_iter().for_each(crate::child::abandon);
    }
}

impl Answers {
    /// The next answer. `EAGAIN` if there is none yet, `Ok(None)` if all spawners are gone.
    pub fn receive(&self) -> Result<Option<Answer>, Errno> {
        let received = self.exchange.outcomes.receive(self.socket.as_fd())?;
        Ok(received.map(|(id, outcome, pidfds)| {
            let spawned = |pid| match pidfds.into_iter().next() {
                Some(pidfd) => Spawned::Held(Child::new(pid, pidfd)),
                None => Spawned::Unheld(Unheld { pid: Some(pid) }),
            };
            Answer { id, result: outcome.map(spawned) }
        }))
    }
}

impl Drop for Answers {
    /// A child whose answer is not taken has no owner, so dropping each received answer kills it.
    fn drop(&mut self) {
        // After this the spawners cannot send, and kill the child they have just made.
        _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        while let Ok(Some(answer)) = self.receive() {
            drop(answer);
        }
    }
}

impl AsFd for Answers {
    /// Readable if there is an answer.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Answers {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}
