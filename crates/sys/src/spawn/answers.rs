//! The spawners' answers, over the same socket as the requests.
//!
//! A message is 13 bytes (id, errno or pid, step). For a started leader it carries the pidfd.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::request::{Failure, Step};
use super::socket;
use crate::{Child, leaders};

/// The receiving end, in the program's descriptor table.
#[derive(Debug)]
pub struct Answers {
    socket: Arc<OwnedFd>,
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
    pub(super) fn new(socket: Arc<OwnedFd>) -> Self {
        Self { socket }
    }

    /// The next answer. `EAGAIN` if there is none yet, `Ok(None)` if all spawners are gone.
    pub fn receive(&self) -> Result<Option<Answer>, Errno> {
        let received = socket::receive(self.socket.as_fd())?;
        Ok(received.map(|(body, descriptors)| {
            let message = Message::from_bytes(body);
            Answer { id: message.id, result: message.open(descriptors.into_iter().next()) }
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

/// Reports that a request failed.
pub(super) fn send_failure(socket: BorrowedFd<'_>, id: u64, failure: Failure) -> Result<(), Errno> {
    let message = Message { id, step: failure.step as u8, number: failure.errno.raw_os_error() };
    socket::send(socket, &message.to_bytes(), &[])
}

/// Hands over a started leader, with its pidfd or with only its pid.
pub(super) fn send_started(
    socket: BorrowedFd<'_>,
    id: u64,
    pid: Pid,
    pidfd: Option<BorrowedFd<'_>>,
) -> Result<(), Errno> {
    let message = Message { id, step: 0, number: pid.as_raw_nonzero().get() };
    socket::send(socket, &message.to_bytes(), pidfd.as_slice())
}

const BODY: usize = 13;

#[derive(Debug, Clone, Copy)]
struct Message {
    id: u64,
    /// The step that failed; 0 for none.
    step: u8,
    /// The errno of a failure, otherwise the pid.
    number: i32,
}

impl Message {
    fn to_bytes(self) -> [u8; BODY] {
        let mut bytes = [0; BODY];
        bytes[..8].copy_from_slice(&self.id.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.number.to_ne_bytes());
        bytes[12] = self.step;
        bytes
    }

    fn from_bytes(bytes: [u8; BODY]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, step] = bytes;
        Self {
            id: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            number: i32::from_ne_bytes([i, j, k, l]),
            step,
        }
    }

    fn open(self, pidfd: Option<OwnedFd>) -> Result<Spawned, Failure> {
        if let Some(step) = Step::from_number(self.step) {
            return Err(Failure { step, errno: Errno::from_raw_os_error(self.number) });
        }
        let no_pid = Failure { step: Step::Clone, errno: Errno::CHILD };
        let pid = Pid::from_raw(self.number).ok_or(no_pid)?;
        Ok(match pidfd {
            Some(pidfd) => Spawned::Held(Child::new(pid, pidfd)),
            None => Spawned::Unheld(Unheld { pid: Some(pid) }),
        })
    }
}
