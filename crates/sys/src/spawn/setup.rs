//! The child between clone and exec.
//!
//! It shares the spawner's memory and must leave it as it found it: raw system calls only, no
//! allocation, no libc, no panic. What goes wrong is written into the shared [`Setup`], which the
//! spawner reads once the kernel lets it go on.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::io::Errno;

use super::confine::Confining;
use super::request::{Failure, Output, Request, Step};
use crate::descriptor_limit::{self, Limits};
use crate::leaders::Birth;
use crate::raw::{check, syscall};

/// The lists that exec takes: arrays of pointers that end with a null one.
pub(super) struct Setup<'a> {
    programs: Vec<*const c_char>,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    cwd: &'a CString,
    streams: [BorrowedFd<'a>; 3],
    output: Output,
    descriptors: Option<Limits>,
    confining: Option<Confining<'a>>,
    birth: &'a Birth,
    /// Written by the child, read by the spawner after it; the two never run at once.
    failure: Cell<Option<Failure>>,
}

impl<'a> Setup<'a> {
    /// The streams' descriptors must be above 2, so that none is overwritten before it is used.
    pub(super) fn new(
        request: &'a Request,
        streams: [BorrowedFd<'a>; 3],
        confining: Option<Confining<'a>>,
        birth: &'a Birth,
    ) -> Self {
        debug_assert!(streams.iter().all(|stream| stream.as_raw_fd() > 2));
        Self {
            programs: pointers(&request.programs),
            argv: pointers(&request.argv),
            env: pointers(&request.env),
            cwd: &request.cwd,
            streams,
            output: request.output,
            descriptors: descriptor_limit::of_children(),
            confining,
            birth,
            failure: Cell::new(None),
        }
    }

    /// The namespaces that the child is to be born in, as flags of clone.
    pub(super) fn namespaces(&self) -> u32 {
        self.confining.as_ref().map_or(0, Confining::flags)
    }

    /// What the filter that the child is born with is shown; nothing where there is none.
    pub(super) fn pass(&self) -> u64 {
        self.confining.as_ref().map_or(0, Confining::pass)
    }

    /// What the child left behind: `None` when it reached its program.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.failure.get()
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

/// Runs in the child, on its own stack.
///
/// # Safety
/// `setup` points to a live [`Setup`] that nobody else touches until this process has executed
/// its program or ended; all signals are blocked.
pub(super) unsafe extern "C" fn enter(setup: *mut c_void) -> ! {
    // SAFETY: live and untouched by others, by the contract above.
    let setup = unsafe { &*setup.cast::<Setup<'_>>() };
    // SAFETY: takes nothing and touches no memory.
    setup.birth.announce(unsafe { syscall(libc::SYS_getpid, [0; 4]) });
    let failure = match prepare(setup) {
        Ok(()) => execute(setup),
        Err(failure) => failure,
    };
    setup.failure.set(Some(failure));
    end(127)
}

/// A child that does nothing at all.
///
/// # Safety
/// Runs in a process of its own; see [`enter`].
pub(super) unsafe extern "C" fn leave(_: *mut c_void) -> ! {
    end(0)
}

fn end(code: usize) -> ! {
    loop {
        // SAFETY: ends this process, which is no thread of the spawner's.
        unsafe { syscall(libc::SYS_exit_group, [code, 0, 0, 0]) };
    }
}

/// Everything before the program, in this order. The signal mask comes last: until then no signal
/// can run anything here.
fn prepare(setup: &Setup<'_>) -> Result<(), Failure> {
    call(Step::Session, libc::SYS_setsid, [0; 4])?;
    for (target, stream) in setup.streams.iter().enumerate() {
        let source = stream.as_raw_fd().unsigned_abs() as usize;
        call(Step::Streams, libc::SYS_dup3, [source, target, 0, 0])?;
    }
    if let Output::Pty(_) = setup.output {
        // Standard output, since standard input may be closed. The session has no terminal yet.
        call(Step::Terminal, libc::SYS_ioctl, [1, libc::TIOCSCTTY as usize, 0, 0])?;
    }
    reset_signals()?;
    let confining = setup.confining.as_ref();
    confining.map_or(Ok(()), Confining::lay_mounts)?;
    // By its path: what it leads to depends on the mounts.
    call(Step::Cwd, libc::SYS_chdir, [setup.cwd.as_ptr() as usize])?;
    confining.map_or(Ok(()), Confining::give_up)?;
    close_from(3)?;
    confining.map_or(Ok(()), Confining::mark)?;
    if let Some(limits) = &setup.descriptors {
        let (which, limits) = (libc::RLIMIT_NOFILE as usize, limits.as_ptr() as usize);
        call(Step::Limits, libc::SYS_prlimit64, [0, which, limits, 0])?;
    }
    let empty_mask = 0u64;
    let how = libc::SIG_SETMASK.unsigned_abs() as usize;
    let mask = ptr::from_ref(&empty_mask) as usize;
    call(Step::Signals, libc::SYS_rt_sigprocmask, [how, mask, 0, size_of::<u64>()])
}

/// All dispositions to default: an ignored signal would otherwise stay ignored over exec.
fn reset_signals() -> Result<(), Failure> {
    // The kernel's own sigaction: handler, flags, restorer, mask. All zero is SIG_DFL.
    let default = [0u64; 4];
    for signal in 1..=64usize {
        if signal != libc::SIGKILL as usize && signal != libc::SIGSTOP as usize {
            let action = default.as_ptr() as usize;
            call(Step::Signals, libc::SYS_rt_sigaction, [signal, action, 0, size_of::<u64>()])?;
        }
    }
    Ok(())
}

/// Closes every descriptor from `first` on. A filter may refuse the call here that the spawner was
/// allowed; its private table, in which all is closed on exec, then has to do.
fn close_from(first: usize) -> Result<(), Failure> {
    match call(Step::Descriptors, libc::SYS_close_range, [first, u32::MAX as usize, 0, 0]) {
        Err(Failure { errno: Errno::NOSYS | Errno::PERM, .. }) => Ok(()),
        answer => answer,
    }
}

/// Tries each path; returns only if none could be executed.
///
/// The rules are those of `execvp`: a path that does not lead to a file is passed over, a file
/// that may not be executed is remembered, anything else ends the search.
fn execute(setup: &Setup<'_>) -> Failure {
    let mut verdict = Errno::NOENT;
    for program in &setup.programs {
        if program.is_null() {
            break;
        }
        let args =
            [*program as usize, setup.argv.as_ptr() as usize, setup.env.as_ptr() as usize, 0];
        match call(Step::Program, libc::SYS_execve, args) {
            Err(Failure { errno: Errno::NOENT | Errno::NOTDIR, .. }) | Ok(()) => {}
            Err(Failure { errno: Errno::ACCESS, .. }) => verdict = Errno::ACCESS,
            Err(failure) => return failure,
        }
    }
    Failure { step: Step::Program, errno: verdict }
}

/// One raw call. Every argument is a number or a pointer into the spawner's memory, which is live
/// and still as long as this process has not executed its program.
pub(super) fn call<const N: usize>(
    step: Step,
    number: i64,
    args: [usize; N],
) -> Result<(), Failure> {
    value_of(step, number, args).map(drop)
}

/// The same, for what the call returns.
pub(super) fn value_of<const N: usize>(
    step: Step,
    number: i64,
    args: [usize; N],
) -> Result<usize, Failure> {
    // SAFETY: only the steps of the child come here, with arguments that fit their calls; the
    // memory they point to is the `Setup`'s or that of a frame below.
    check(unsafe { syscall(number, args) }).map_err(|errno| Failure { step, errno })
}
