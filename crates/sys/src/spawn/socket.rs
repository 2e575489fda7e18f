//! Messages with descriptors, between the program's table and those of its spawners.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::{Errno, IoSlice};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::pipe::retry;

/// A child has at most three ends; an answer has one pidfd.
const MOST_DESCRIPTORS: usize = 3;

/// The sender still has to close its own copies of the descriptors.
pub(super) fn send(
    socket: BorrowedFd<'_>,
    body: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    retry(|| sendmsg(socket, &[IoSlice::new(body)], &mut control, SendFlags::NOSIGNAL)).map(drop)
}

pub(super) type Message<const BODY: usize> = ([u8; BODY], Vec<OwnedFd>);

/// The next message. If the table is full, the kernel silently drops its descriptors. `Ok(None)` if
/// nothing can send any more.
pub(super) fn receive<const BODY: usize>(
    socket: BorrowedFd<'_>,
) -> Result<Option<Message<BODY>>, Errno> {
    let mut body = [0u8; BODY];
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
    Ok(Some((body, descriptors)))
}
