//! Pipes: splicing their bytes into files without a copy in user space, and their size.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
pub(crate) use rustix::io::retry_on_intr as retry;
use rustix::pipe::{IoSliceRaw, PipeFlags, SpliceFlags};

/// A pipe with both ends close-on-exec and blocking.
pub fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
}

/// A pipe with both ends close-on-exec and non-blocking.
pub(crate) fn nonblocking_pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
}

/// Makes a new end of a pipe blocking again.
pub(crate) fn set_blocking(end: impl AsFd) -> Result<(), Errno> {
    // A new end has no other flag set.
    rustix::fs::fcntl_setfl(&end, OFlags::empty())
}

/// Makes this end non-blocking.
pub fn set_nonblocking(end: impl AsFd) -> Result<(), Errno> {
    let flags = rustix::fs::fcntl_getfl(&end)?;
    rustix::fs::fcntl_setfl(&end, flags | OFlags::NONBLOCK)
}

/// Moves up to `most` ready bytes from `pipe` into `file` at `offset`. Never waits for the pipe.
///
/// At every moment a byte is either in the pipe or in the file, so a crash of the caller loses
/// none. `Ok(0)` is the end of the pipe, `EAGAIN` means it is empty. The file must not be open with
/// `O_APPEND` (`EINVAL`).
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

/// As [`splice_into_file`], at the file's own position, which moves with the bytes: at every moment it
/// tells how many the file has taken, whatever happens to the caller.
pub fn splice_to_position(pipe: impl AsFd, file: impl AsFd, most: usize) -> Result<usize, Errno> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    retry(|| rustix::pipe::splice(&pipe, None, &file, None, most, flags))
}

/// Moves up to `most` bytes of `file`, from its own position on, into `pipe`, without waiting.
///
/// The position moves with the bytes: at every moment it is the number of bytes that the pipe has
/// taken, whatever happens to the caller. The pipe refers to the file's pages instead of copying them,
/// so bytes that are in the pipe must not change in the file. `Ok(0)` is the end of the file, `EAGAIN`
/// means that the pipe is full.
pub fn splice_from_file(file: impl AsFd, pipe: impl AsFd, most: usize) -> Result<usize, Errno> {
    let flags = SpliceFlags::NONBLOCK;
    retry(|| rustix::pipe::splice(&file, None, &pipe, None, most, flags))
}

/// Reads what is ready, without waiting. `Ok(0)` is the end, `EAGAIN` means nothing yet.
///
/// A writer that sets `O_DIRECT` on its end writes packets, and read(2) discards the part of a
/// packet that does not fit into the buffer. vmsplice(2) leaves it in the pipe. If a seccomp filter
/// refuses vmsplice, read(2) has to do.
pub fn read(pipe: impl AsFd, into: &mut [u8]) -> Result<usize, Errno> {
    match retry(|| splice_into_memory(&pipe, into)) {
        Err(Errno::NOSYS | Errno::PERM) => retry(|| rustix::io::read(&pipe, &mut *into)),
        answer => answer,
    }
}

fn splice_into_memory(pipe: impl AsFd, into: &mut [u8]) -> Result<usize, Errno> {
    let into = [IoSliceRaw::from_slice_mut(into)];
    // SAFETY: on the reading end of a pipe the call copies into the buffer, which is live and
    // borrowed for the duration; on any other descriptor it fails.
    unsafe { rustix::pipe::vmsplice(pipe, &into, SpliceFlags::NONBLOCK) }
}

/// Writes what fits, without waiting. `EAGAIN` if the pipe is full.
pub fn write(pipe: impl AsFd, bytes: &[u8]) -> Result<usize, Errno> {
    retry(|| rustix::io::write(&pipe, bytes))
}

/// What a read would return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    Bytes,
    Nothing,
    End,
}

/// Polls without taking a byte.
pub fn readiness(pipe: impl AsFd) -> Result<Readiness, Errno> {
    match poll_once(&pipe)? {
        // The kernel checks the bytes first and the writers second, without a lock. If a writer
        // writes and closes in between, this looks like an end while a byte is still there. Without
        // writers the second answer is final.
        Readiness::End => poll_once(&pipe),
        answer => Ok(answer),
    }
}

fn poll_once(pipe: impl AsFd) -> Result<Readiness, Errno> {
    let events = poll_now(pipe, PollFlags::IN)?;
    Ok(match (events.contains(PollFlags::IN), events.is_empty()) {
        (true, _) => Readiness::Bytes,
        (false, true) => Readiness::Nothing,
        (false, false) => Readiness::End,
    })
}

/// Which of these events there are now, and whether there is an error or a hangup.
pub(crate) fn poll_now(fd: impl AsFd, events: PollFlags) -> Result<PollFlags, Errno> {
    let mut polled = [PollFd::new(&fd, events)];
    retry(|| poll(&mut polled, Some(&Timespec::default())))?;
    Ok(polled[0].revents())
}

/// How many bytes are ready in the pipe.
pub fn ready(pipe: impl AsFd) -> Result<u64, Errno> {
    rustix::io::ioctl_fionread(pipe)
}

/// Asks for a larger pipe buffer. The kernel may refuse (`EPERM` above the user's quota).
pub fn grow(pipe: impl AsFd, bytes: usize) -> Result<usize, Errno> {
    rustix::pipe::fcntl_setpipe_size(pipe, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_does_not_fit_into_the_buffer_is_not_cut() {
        for size in [1, 2, 1000, 4095, 4096] {
            let (read_end, write_end) = pipe().unwrap();
            let flags = rustix::fs::fcntl_getfl(&write_end).unwrap();
            rustix::fs::fcntl_setfl(&write_end, flags | OFlags::DIRECT).unwrap();
            for byte in 0..3 {
                assert_eq!(write(&write_end, &vec![byte; size]), Ok(size));
            }
            drop(write_end);
            let (mut bytes, mut buffer) = (Vec::<u8>::new(), [0; 1500]);
            for most in (1..=buffer.len()).cycle() {
                match read(&read_end, &mut buffer[..most]).unwrap() {
                    0 => break,
                    count => bytes.extend(&buffer[..count]),
                }
            }
            let want = [vec![0; size], vec![1; size], vec![2; size]].concat();
            assert!(bytes == want, "packets of {size} bytes");
        }
    }

    #[test]
    fn the_position_of_a_file_follows_the_bytes_that_a_pipe_takes() {
        use crate::memory_file;
        let (read_end, write_end) = nonblocking_pipe().unwrap();
        let file = memory_file::create("test").unwrap();
        let bytes: Vec<u8> = (0..200_000).map(|number| (number % 251) as u8).collect();
        memory_file::append(&file, 0, &bytes).unwrap();
        let (mut got, mut chunk) = (Vec::<u8>::new(), vec![0; 50_000]);
        while got.len() < bytes.len() {
            while splice_from_file(&file, &write_end, 1 << 30) != Err(Errno::AGAIN) {
                if memory_file::position(&file) == Ok(bytes.len() as u64) {
                    break;
                }
            }
            let in_pipe = ready(&write_end).unwrap();
            assert_eq!(memory_file::position(&file), Ok(got.len() as u64 + in_pipe));
            let count = read(&read_end, &mut chunk).unwrap();
            got.extend(&chunk[..count]);
        }
        assert!(got == bytes);
        assert_eq!(splice_from_file(&file, &write_end, 1), Ok(0));
        drop(read_end);
        memory_file::append(&file, 200_000, b"x").unwrap();
        assert_eq!(splice_from_file(&file, &write_end, 1), Err(Errno::PIPE));
        assert_eq!(memory_file::position(&file), Ok(200_000));
    }

    #[test]
    fn an_empty_pipe_says_so_and_one_without_writers_is_at_its_end() {
        let (read_end, write_end) = pipe().unwrap();
        assert_eq!(read(&read_end, &mut [0; 10]), Err(Errno::AGAIN));
        drop(write_end);
        assert_eq!(read(&read_end, &mut [0; 10]), Ok(0));
    }
}
