//! A descriptor table of one thread: what is opened here no other thread's child can inherit.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags, dup2, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use super::request::{Failure, Output, Request, Stdin, Step};
use crate::pipe::{pipe, set_nonblocking};
use crate::pty::{self, WindowSize};

/// What a spawner keeps open: its end of the answers' socket and `/dev/null`.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) socket: OwnedFd,
    null: OwnedFd,
}

/// The descriptors of one spawn: three for the child, the others ours.
#[derive(Debug)]
pub(super) struct Pipes {
    child: Vec<OwnedFd>,
    ours: Vec<OwnedFd>,
}

impl Table {
    /// Gives the calling thread a table of its own that holds nothing but `socket`, taken by
    /// number from the shared table, and `/dev/null` in the place of the standard streams.
    pub(super) fn enter(socket: RawFd) -> Result<Self, Errno> {
        // SAFETY: the thread has just started and owns no descriptor, so none changes its meaning.
        unsafe { unshare_unsafe(UnshareFlags::FILES) }?;
        // SAFETY: the copied table has this number, and the program keeps the original open until
        // this function has answered.
        let socket = unsafe { BorrowedFd::borrow_raw(socket) };
        let first = FIRST_FREE;
        let socket = fcntl_dupfd_cloexec(socket, first)?;
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let null = fcntl_dupfd_cloexec(null, first)?;
        close_others(&[&socket, &null])?;
        for stream in 0..=2 {
            replace_standard_stream(stream, &null)?;
        }
        Ok(Self { socket, null })
    }

    /// Opens what this request needs. Ours do not block; all are closed on exec.
    pub(super) fn open(&self, request: &Request) -> Result<Pipes, Failure> {
        let mut pipes = Pipes { child: Vec::with_capacity(3), ours: Vec::with_capacity(3) };
        match request.output {
            Output::Pty(size) => self.add_terminal(&mut pipes, request.stdin, size),
            Output::Merged | Output::Split => self.add_pipes(&mut pipes, request),
        }?;
        Ok(pipes)
    }

    fn add_pipes(&self, pipes: &mut Pipes, request: &Request) -> Result<(), Failure> {
        let failed = |errno| Failure { step: Step::Pipes, errno };
        match request.stdin {
            Stdin::Null => pipes.child.push(clone(&self.null).map_err(failed)?),
            Stdin::Pipe => pipes.add_input().map_err(failed)?,
        }
        pipes.add_output().map_err(failed)?;
        if request.output == Output::Split {
            return pipes.add_output().map_err(failed);
        }
        pipes.child.push(clone(&pipes.child[1]).map_err(failed)?);
        Ok(())
    }

    fn add_terminal(
        &self,
        pipes: &mut Pipes,
        stdin: Stdin,
        size: WindowSize,
    ) -> Result<(), Failure> {
        let failed = |errno| Failure { step: Step::Pty, errno };
        let (ours, terminal) = pty::open(size).map_err(failed)?;
        set_nonblocking(&ours).map_err(failed)?;
        let input = match stdin {
            Stdin::Null => &self.null,
            Stdin::Pipe => &terminal,
        };
        pipes.child.push(clone(input).map_err(failed)?);
        pipes.child.push(clone(&terminal).map_err(failed)?);
        pipes.child.push(clone(&terminal).map_err(failed)?);
        pipes.ours.extend([ours, terminal]);
        Ok(())
    }
}

impl Pipes {
    pub(super) fn for_child(&self) -> [BorrowedFd<'_>; 3] {
        [self.child[0].as_fd(), self.child[1].as_fd(), self.child[2].as_fd()]
    }

    /// The child has its own by now.
    pub(super) fn close_childs(&mut self) {
        self.child.clear();
    }

    pub(super) fn ours(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.ours.iter().map(AsFd::as_fd)
    }

    fn add_input(&mut self) -> Result<(), Errno> {
        let (read, write) = pipe()?;
        set_nonblocking(&write)?;
        self.child.push(read);
        self.ours.push(write);
        Ok(())
    }

    fn add_output(&mut self) -> Result<(), Errno> {
        let (read, write) = pipe()?;
        set_nonblocking(&read)?;
        self.child.push(write);
        self.ours.push(read);
        Ok(())
    }
}

/// Above the standard streams.
const FIRST_FREE: RawFd = 3;

/// Closes all that the copied table has but these: a copy held here would keep a pipe or socket
/// of the program open behind its back.
fn close_others(keep: &[&OwnedFd]) -> Result<(), Errno> {
    use std::os::fd::AsRawFd;
    let mut keep: Vec<_> = keep.iter().map(|fd| fd.as_raw_fd().unsigned_abs()).collect();
    keep.sort_unstable();
    let mut first = 3u32;
    for kept in keep.into_iter().chain([u32::MAX]) {
        if first < kept {
            close_range(first, kept - 1)?;
        }
        first = kept.saturating_add(1);
    }
    Ok(())
}

fn close_range(first: u32, last: u32) -> Result<(), Errno> {
    // SAFETY: the table is this thread's own; nothing here owns a descriptor in the range.
    match unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } {
        0 => Ok(()),
        _ => Err(errno(std::io::Error::last_os_error())),
    }
}

fn replace_standard_stream(number: RawFd, null: &OwnedFd) -> Result<(), Errno> {
    use std::mem::ManuallyDrop;
    use std::os::fd::FromRawFd;
    // SAFETY: a number, not an owner: in this private table nothing owns the standard streams, and
    // the wrapper is never dropped.
    let mut target = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
    dup2(null, &mut target)?;
    fcntl_setfd(&*target, FdFlags::empty())
}

fn clone(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    fd.try_clone().map_err(errno)
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
