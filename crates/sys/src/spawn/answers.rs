//! Answers of the spawners, with the descriptors they made, over one socket.
//!
//! A message is 14 bytes (id, errno or pid, step, which pipes) and the descriptors: the pidfd, then
//! the pipe ends in the order stdin, stdout, stderr.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

use rustix::io::{Errno, IoSlice};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::Pid;

use super::request::{Failure, Output, OutputEnds, Request, Spawned, Stdin, Step};
use crate::Child;

/// The receiving end, in the descriptor table of the program.
#[derive(Debug)]
pub struct Answers {
    socket: OwnedFd,
}

/// What became of the request with this id.
#[derive(Debug)]
pub struct Answer {
    pub id: u64,
    pub result: Result<Spawned, Failure>,
}

impl Answers {
    pub(super) fn new(socket: OwnedFd) -> Self {
        Self { socket }
    }

    /// The next answer. `EAGAIN` when there is none yet, `Ok(None)` when all spawners are gone.
    pub fn receive(&self) -> Result<Option<Answer>, Errno> {
        let mut body = [0u8; BODY];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [IoSliceMut::new(&mut body)];
        let received = recvmsg(&self.socket, into, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        if received.bytes == 0 {
            return Ok(None);
        }
        let mut descriptors = Vec::with_capacity(MOST_DESCRIPTORS);
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        let message = Message::from_bytes(body);
        Ok(Some(Answer { id: message.id, result: message.open(descriptors) }))
    }
}

impl Drop for Answers {
    /// A child whose answer nobody takes belongs to nobody: each is killed as it is taken out.
    fn drop(&mut self) {
        // From here on the spawners cannot send, and kill what they have just made.
        _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        while let Ok(Some(answer)) = self.receive() {
            drop(answer);
        }
    }
}

impl AsFd for Answers {
    /// Readable when there is an answer.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Answers {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Says that a request failed.
pub(super) fn send_failure(socket: BorrowedFd<'_>, id: u64, failure: Failure) -> Result<(), Errno> {
    let message =
        Message { id, step: failure.step as u8, number: failure.errno.raw_os_error(), pipes: 0 };
    send(socket, message, &[])
}

/// Hands a started leader over. The sender's copies of the descriptors are its own to close.
pub(super) fn send_spawned(
    socket: BorrowedFd<'_>,
    (id, request): (u64, &Request),
    pid: Pid,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let stdin = match (request.stdin, request.output) {
        (Stdin::Null, _) | (Stdin::Pipe, Output::Pty(_)) => 0,
        (Stdin::Pipe, Output::Merged | Output::Split) => WITH_STDIN,
    };
    let output = match request.output {
        Output::Merged => 0,
        Output::Split => WITH_STDERR,
        Output::Pty(_) => PTY,
    };
    let pipes = stdin | output;
    send(socket, Message { id, step: 0, number: pid.as_raw_nonzero().get(), pipes }, descriptors)
}

const BODY: usize = 14;
const MOST_DESCRIPTORS: usize = 4;
const WITH_STDIN: u8 = 1;
const WITH_STDERR: u8 = 2;
const PTY: u8 = 4;

#[derive(Debug, Clone, Copy)]
struct Message {
    id: u64,
    /// The step that failed; 0 for none.
    step: u8,
    /// The errno of a failure, else the pid.
    number: i32,
    pipes: u8,
}

impl Message {
    fn to_bytes(self) -> [u8; BODY] {
        let mut bytes = [0; BODY];
        bytes[..8].copy_from_slice(&self.id.to_ne_bytes());
        bytes[8..12].copy_from_slice(&self.number.to_ne_bytes());
        bytes[12] = self.step;
        bytes[13] = self.pipes;
        bytes
    }

    fn from_bytes(bytes: [u8; BODY]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, step, pipes] = bytes;
        Self {
            id: u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            number: i32::from_ne_bytes([i, j, k, l]),
            step,
            pipes,
        }
    }

    fn open(self, descriptors: Vec<OwnedFd>) -> Result<Spawned, Failure> {
        if let Some(step) = Step::from_number(self.step) {
            return Err(Failure { step, errno: Errno::from_raw_os_error(self.number) });
        }
        // The kernel drops what does not fit into a full descriptor table and says nothing else.
        let no_room = Failure { step: Step::Handover, errno: Errno::MFILE };
        let pid = Pid::from_raw(self.number).ok_or(no_room)?;
        let mut descriptors = descriptors.into_iter();
        let Some(pidfd) = descriptors.next() else {
            crate::child::abandon(pid);
            return Err(no_room);
        };
        // From here on dropping the child kills it.
        let child = Child::new(pid, pidfd);
        let mut next = || descriptors.next().ok_or(no_room);
        let stdin = (self.pipes & WITH_STDIN != 0).then(&mut next).transpose()?;
        let stdout = next()?;
        let output = match self.pipes & (WITH_STDERR | PTY) {
            0 => OutputEnds::Merged(stdout),
            PTY => OutputEnds::Pty { ours: stdout, terminal: next()? },
            _ => OutputEnds::Split { stdout, stderr: next()? },
        };
        Ok(Spawned { child, stdin, output })
    }
}

fn send(
    socket: BorrowedFd<'_>,
    message: Message,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let body = message.to_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(descriptors));
    loop {
        match sendmsg(socket, &[IoSlice::new(&body)], &mut control, SendFlags::NOSIGNAL) {
            Err(Errno::INTR) => {}
            answer => return answer.map(drop),
        }
    }
}
