//! Messages between the program and its spawners.
//!
//! A socket carries an id and descriptors, which it moves from one descriptor table into another;
//! one message wakes one receiver. The rest of a message stays in memory.

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::io::{Errno, IoSlice};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::Pid;

use super::request::{Failure, Request};
use crate::pipe::retry;

/// The messages in both directions.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) requests: Contents<Request>,
    pub(super) outcomes: Contents<PidOrFailure>,
}

/// What a spawner reports: the pid of a started leader, or why there is none.
pub(super) type PidOrFailure = Result<Pid, Failure>;

/// The contents of the messages in one direction, by id.
#[derive(Debug)]
pub(super) struct Contents<T>(Mutex<HashMap<u64, T>>);

/// A child has at most three ends; an answer has one pidfd.
const MOST_DESCRIPTORS: usize = 3;

impl Exchange {
    pub(super) fn new() -> Self {
        Self { requests: Contents(Mutex::default()), outcomes: Contents(Mutex::default()) }
    }
}

impl<T> Contents<T> {
    /// The sender still has to close its own copies of the descriptors.
    pub(super) fn send(
        &self,
        socket: BorrowedFd<'_>,
        (id, contents): (u64, T),
        descriptors: &[BorrowedFd<'_>],
    ) -> Result<(), Errno> {
        self.contents().insert(id, contents);
        let sent = send(socket, id, descriptors);
        sent.inspect_err(|_| drop(self.contents().remove(&id)))
    }

    /// The next message. If the table is full, the kernel silently drops its descriptors.
    /// `Ok(None)` if nothing can send any more.
    pub(super) fn receive(
        &self,
        socket: BorrowedFd<'_>,
    ) -> Result<Option<(u64, T, Vec<OwnedFd>)>, Errno> {
        while let Some((id, descriptors)) = receive(socket)? {
            if let Some(contents) = self.contents().remove(&id) {
                return Ok(Some((id, contents, descriptors)));
            }
        }
        Ok(None)
    }

    fn contents(&self) -> MutexGuard<'_, HashMap<u64, T>> {
        // Every update is complete in itself, so a poisoned lock is usable.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn send(socket: BorrowedFd<'_>, id: u64, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let body = id.to_ne_bytes();
    retry(|| sendmsg(socket, &[IoSlice::new(&body)], &mut control, SendFlags::NOSIGNAL)).map(drop)
}

fn receive(socket: BorrowedFd<'_>) -> Result<Option<(u64, Vec<OwnedFd>)>, Errno> {
    let mut body = [0; size_of::<u64>()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let into = &mut [IoSliceMut::new(&mut body)];
    let received = recvmsg(socket, into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::with_capacity(MOST_DESCRIPTORS);
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok(Some((u64::from_ne_bytes(body), descriptors)))
}
