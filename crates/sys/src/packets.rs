//! Messages with descriptors between processes: a pair of sockets that keeps messages apart.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, IoSlice};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use crate::pipe::retry;

/// The most descriptors that the kernel lets into one message.
pub const MOST_DESCRIPTORS: usize = 253;

/// Two sockets that are connected with each other, both close-on-exec and blocking.
pub fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Sends one message and copies of these descriptors. Does not wait for the other side: if its
/// queue is full, the answer is `EAGAIN`.
pub fn send(
    socket: impl AsFd,
    message: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if descriptors.len() > MOST_DESCRIPTORS {
        return Err(Errno::MSGSIZE);
    }
    if !descriptors.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    retry(|| sendmsg(&socket, &[IoSlice::new(message)], &mut control, flags)).map(drop)
}

/// The next message, which may take this long: its length and its descriptors. If the table is full,
/// the kernel leaves out descriptors without a word. `Ok(None)` if nothing can send any more.
pub fn receive(
    socket: impl AsFd,
    into: &mut [u8],
    patience: Duration,
) -> Result<Option<(usize, Vec<OwnedFd>)>, Errno> {
    // Without a wait there is no need to ask, which fails if the limit of descriptors is 0.
    if !patience.is_zero() && !is_readable(&socket, patience)? {
        return Err(Errno::TIMEDOUT);
    }
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let parts = &mut [IoSliceMut::new(into)];
    let received = match retry(|| recvmsg(&socket, parts, &mut control, flags)) {
        // The other side died without reading everything.
        Err(Errno::CONNRESET) => return Ok(None),
        Err(Errno::AGAIN) => return Err(Errno::TIMEDOUT),
        received => received?,
    };
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    Ok(Some((received.bytes, descriptors)))
}

/// Whether the other side is gone, as far as can be told without taking a message.
pub fn is_closed(socket: impl AsFd) -> bool {
    let mut polled = [PollFd::new(&socket, PollFlags::empty())];
    let now = Duration::ZERO.try_into().expect("zero fits");
    retry(|| poll(&mut polled, Some(&now))).is_ok_and(|ready| ready > 0)
}

fn is_readable(socket: impl AsFd, patience: Duration) -> Result<bool, Errno> {
    let mut polled = [PollFd::new(&socket, PollFlags::IN)];
    let patience = patience.try_into().map_err(|_| Errno::INVAL)?;
    Ok(retry(|| poll(&mut polled, Some(&patience)))? > 0)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn a_message_arrives_whole_with_its_descriptors() {
        let (ours, theirs) = pair().unwrap();
        let (reader, writer) = crate::pipe::pipe().unwrap();
        send(&ours, b"first", &[reader.as_fd()]).unwrap();
        send(&ours, b"2", &[]).unwrap();
        rustix::io::write(&writer, b"through").unwrap();
        drop((reader, writer));
        let mut into = [0; 16];
        let (length, descriptors) = receive(&theirs, &mut into, PATIENCE).unwrap().unwrap();
        assert_eq!(&into[..length], b"first");
        let [reader] = <[OwnedFd; 1]>::try_from(descriptors).unwrap();
        let mut text = String::new();
        File::from(reader).read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        assert!(
            matches!(receive(&theirs, &mut into, PATIENCE), Ok(Some((1, none))) if none.is_empty())
        );
        assert!(!is_closed(&theirs));
        drop(ours);
        assert!(is_closed(&theirs));
        assert!(receive(&theirs, &mut into, PATIENCE).unwrap().is_none());
    }

    #[test]
    fn a_message_that_does_not_come_is_not_waited_for_for_ever() {
        let (_ours, theirs) = pair().unwrap();
        let answer = receive(&theirs, &mut [0; 4], Duration::from_millis(1));
        assert_eq!(answer.err(), Some(Errno::TIMEDOUT));
    }

    #[test]
    fn more_descriptors_than_fit_are_refused() {
        let (ours, _theirs) = pair().unwrap();
        let many = vec![ours.as_fd(); MOST_DESCRIPTORS + 1];
        assert_eq!(send(&ours, b"x", &many), Err(Errno::MSGSIZE));
        send(&ours, b"x", &many[1..]).unwrap();
    }
}
