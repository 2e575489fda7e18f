//! Starts a daemon: a detached child that inherits nothing of ours.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::clone::{Mechanism, NewProcess, Stack, spawn, unless_failed};
use super::request::{Failure, Request, Step};
use super::setup::Setup;
use crate::leaders::Births;
use crate::pipe::pipe;

/// A started daemon. Nothing waits for it. If it exits before we do, it stays a zombie until we
/// exit.
#[derive(Debug)]
pub struct Daemon {
    pub pid: i32,
    /// Its standard output. It reads as ended once the daemon has closed it or is gone.
    pub stdout: OwnedFd,
}

/// Starts a program in its own session and in the root directory, with an empty standard input and
/// this standard error. It inherits none of the caller's descriptors and signal dispositions, and
/// gets only this environment. Returns when the program has been executed.
pub fn start_daemon(
    program: CString,
    argv: Vec<CString>,
    env: Vec<CString>,
    stderr: impl AsFd,
) -> Result<Daemon, Failure> {
    let programs = vec![program];
    let request = Request { programs, argv, env, cwd: c"/".into(), ..Request::default() };
    let (stdout, streams) = open(stderr.as_fd()).map_err(Step::Pipes.failed())?;
    let births = Births::begin();
    let streams = [streams[0].as_fd(), streams[1].as_fd(), streams[2].as_fd()];
    let setup = Setup::new(&request, streams, None, births.next());
    let made = make(&setup).map_err(Step::Clone.failed())?;
    let (pid, _) = unless_failed(made, setup.failure.get())?;
    Ok(Daemon { pid: pid.as_raw_nonzero().get(), stdout })
}

/// Our end of its standard output, and its three streams, numbered above the standard ones.
fn open(stderr: BorrowedFd<'_>) -> Result<(OwnedFd, [OwnedFd; 3]), Errno> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let (ours, stdout) = pipe()?;
    let above = |fd: BorrowedFd<'_>| fcntl_dupfd_cloexec(fd, 3);
    Ok((above(ours.as_fd())?, [above(null.as_fd())?, above(stdout.as_fd())?, above(stderr)?]))
}

fn make(setup: &Setup<'_>) -> Result<NewProcess, Errno> {
    let mut stack = Stack::new()?;
    match spawn(setup, &mut stack, Mechanism::Clone3, None) {
        Err(Errno::NOSYS | Errno::PERM) => spawn(setup, &mut stack, Mechanism::Clone, None),
        answer => answer,
    }
}
