//! Starting a daemon: a child that belongs to nobody here and has nothing of ours.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::clone::{Mechanism, Stack, spawn};
use super::request::{Failure, Output, Request, Stdin, Step};
use super::setup::Setup;
use crate::Child;
use crate::leaders::Births;
use crate::pipe::pipe;

/// A daemon that was started. Nobody waits for it; when it ends before we do, it is a zombie for
/// the time that is left to us.
#[derive(Debug)]
pub struct Daemon {
    pub pid: i32,
    /// What it writes to its standard output: at its end when the daemon has closed it or is gone.
    pub stdout: OwnedFd,
}

/// Starts a program in a session of its own and in the root directory, with an empty standard
/// input and this standard error. Of the caller's descriptors and signal dispositions it has none,
/// and of the environment what is given here. Returns when the program was executed.
pub fn start_daemon(
    program: CString,
    argv: Vec<CString>,
    env: Vec<CString>,
    stderr: impl AsFd,
) -> Result<Daemon, Failure> {
    let request = Request {
        programs: vec![program],
        argv,
        env,
        cwd: c"/".into(),
        stdin: Stdin::Null,
        output: Output::Merged,
        leaf: None,
        confinement: None,
    };
    let (stdout, streams) =
        open(stderr.as_fd()).map_err(|errno| Failure { step: Step::Pipes, errno })?;
    let births = Births::begin();
    let streams = [streams[0].as_fd(), streams[1].as_fd(), streams[2].as_fd()];
    let setup = Setup::new(&request, streams, None, births.next());
    let (pid, pidfd) = make(&setup).map_err(|errno| Failure { step: Step::Clone, errno })?;
    match setup.failure() {
        None => Ok(Daemon { pid: pid.as_raw_nonzero().get(), stdout }),
        Some(failure) => {
            // It has ended itself; whatever its status, the failure says more.
            _ = Child::new(pid, pidfd).reap();
            Err(failure)
        }
    }
}

/// Our end of its standard output, and its three streams, which are above the standard ones.
fn open(stderr: BorrowedFd<'_>) -> Result<(OwnedFd, [OwnedFd; 3]), Errno> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let (ours, stdout) = pipe()?;
    let above = |fd: BorrowedFd<'_>| fcntl_dupfd_cloexec(fd, 3);
    Ok((above(ours.as_fd())?, [above(null.as_fd())?, above(stdout.as_fd())?, above(stderr)?]))
}

fn make(setup: &Setup<'_>) -> Result<(rustix::process::Pid, OwnedFd), Errno> {
    let mut stack = Stack::new()?;
    match spawn(setup, &mut stack, Mechanism::Clone3, None) {
        Err(Errno::NOSYS | Errno::PERM) => spawn(setup, &mut stack, Mechanism::Clone, None),
        answer => answer,
    }
}
