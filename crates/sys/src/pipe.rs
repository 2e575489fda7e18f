//! Pipes: moving their bytes into a file without a copy in user space, and their size.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags};

/// A pipe of which both ends are closed on exec and block.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
}

/// Makes this end answer `EAGAIN` instead of waiting.
pub fn set_nonblocking(end: impl AsFd) -> Result<(), Errno> {
    let flags = rustix::fs::fcntl_getfl(&end)?;
    rustix::fs::fcntl_setfl(&end, flags | OFlags::NONBLOCK)
}

/// Moves at most `most` ready bytes from `pipe` into `file` at `offset`; never waits for the pipe.
///
/// At every instant a byte is either still in the pipe or already in the file, so a crash of the
/// caller loses none. `Ok(0)` is the end of the pipe, `EAGAIN` an empty one. The file must not be
/// open with `O_APPEND` (`EINVAL`).
pub fn splice_into_file(
    pipe: impl AsFd,
    file: impl AsFd,
    offset: u64,
    most: usize,
) -> Result<usize, Errno> {
    let mut offset = offset;
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    retry(|| rustix::pipe::splice(&pipe, None, &file, Some(&mut offset), most, flags))
}

/// Reads what is ready, without waiting. `Ok(0)` is the end, `EAGAIN` nothing yet.
pub fn read(pipe: impl AsFd, into: &mut [u8]) -> Result<usize, Errno> {
    retry(|| rustix::io::read(&pipe, &mut *into))
}

/// Writes what fits, without waiting. `EAGAIN` when the pipe is full.
pub fn write(pipe: impl AsFd, bytes: &[u8]) -> Result<usize, Errno> {
    retry(|| rustix::io::write(&pipe, bytes))
}

/// What a read would meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Bytes,
    Nothing,
    End,
}

/// Looks without taking a byte.
pub fn readiness(pipe: impl AsFd) -> Result<Readiness, Errno> {
    match look(&pipe)? {
        // The kernel looks at the bytes first and at the writers second, without a lock: one that
        // wrote and closed in between shows as an end with a byte still there. Without writers
        // the second answer is final.
        Readiness::End => look(&pipe),
        answer => Ok(answer),
    }
}

fn look(pipe: impl AsFd) -> Result<Readiness, Errno> {
    let mut polled = [PollFd::new(&pipe, PollFlags::IN)];
    retry(|| poll(&mut polled, Some(&Timespec::default())))?;
    let events = polled[0].revents();
    Ok(match (events.contains(PollFlags::IN), events.is_empty()) {
        (true, _) => Readiness::Bytes,
        (false, true) => Readiness::Nothing,
        (false, false) => Readiness::End,
    })
}

/// How many bytes lie ready in the pipe.
pub fn ready(pipe: impl AsFd) -> Result<u64, Errno> {
    rustix::io::ioctl_fionread(pipe)
}

/// Asks for a larger pipe buffer; the kernel may refuse (`EPERM` past the user's share).
pub fn grow(pipe: impl AsFd, bytes: usize) -> Result<usize, Errno> {
    rustix::pipe::fcntl_setpipe_size(pipe, bytes)
}

/// Calls again when a signal came in between.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}
