//! The child between clone and exec.
//!
//! It shares the spawner's memory and must not change it: raw system calls only, no allocation, no
//! libc, no panic. It writes a failure into the shared [`Setup`], which the spawner reads when the
//! kernel resumes it.

use std::cell::Cell;
use std::ffi::{CString, c_char, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::io::Errno;

use super::confine::Confining;
use super::request::{Failure, Output, Request, Step};
use crate::core_dumps;
use crate::descriptor_limit::{self, SoftAndHard};
use crate::own_signals;
use crate::raw::{check, number, syscall};
use crate::registry::Place;
use crate::tag::Tag;

/// The child's instructions. The lists are in exec's form: arrays of pointers that end with a null
/// one.
pub(super) struct Setup<'a> {
    request: &'a Request,
    argv: Vec<*const c_char>,
    env: Vec<*const c_char>,
    streams: [BorrowedFd<'a>; 3],
    descriptors: Option<SoftAndHard>,
    core_dumps: Option<SoftAndHard>,
    tag: Option<[(usize, SoftAndHard); 2]>,
    rlimits: [Option<(usize, SoftAndHard)>; 3],
    confining: Option<Confining<'a>>,
    birth: &'a AtomicI32,
    /// The signals to reset to the default action: bit n - 1 is signal n.
    pub(super) reset: Cell<u64>,
    /// Written by the child and read by the spawner afterwards; the two never run at the same time.
    /// `None` if it executed its program.
    pub(super) failure: Cell<Option<Failure>>,
}

impl<'a> Setup<'a> {
    /// The streams' descriptors must be above 2, so that none is overwritten before it is used.
    pub(super) fn new(
        request: &'a Request,
        streams: [BorrowedFd<'a>; 3],
        confining: Option<Confining<'a>>,
        birth: &'a AtomicI32,
    ) -> Self {
        debug_assert!(streams.iter().all(|stream| stream.as_raw_fd() > 2));
        Self {
            request,
            argv: pointers(&request.argv),
            env: pointers(&request.env),
            streams,
            descriptors: descriptor_limit::for_children(),
            core_dumps: core_dumps::for_children(),
            tag: request.tag.map(Tag::limits),
            rlimits: request.rlimits.for_child(),
            confining,
            birth,
            reset: Cell::new(own_signals::may_be_ignored()),
            failure: Cell::new(None),
        }
    }

    /// The namespaces to create the child in, as flags of clone.
    pub(super) fn namespaces(&self) -> u32 {
        self.confining.as_ref().map_or(0, Confining::flags)
    }

    /// Where the kernel writes the pid of the child.
    pub(super) fn pid_word(&self) -> Option<&'static AtomicI32> {
        self.request.place.map(Place::pid_word)
    }

    /// The pass for the filter that the child inherits; 0 without a filter.
    pub(super) fn pass(&self) -> u64 {
        self.confining.as_ref().map_or(0, Confining::pass)
    }
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect()
}

/// Runs in the child, on its own stack.
///
/// # Safety
/// `setup` must point to a live [`Setup`] that nothing else accesses until this process has
/// executed its program or exited; all signals must be blocked.
pub(super) unsafe extern "C" fn enter(setup: *mut c_void) -> ! {
    // SAFETY: live and not accessed by anything else, by the contract above.
    let setup = unsafe { &*setup.cast::<Setup<'_>>() };
    // SAFETY: getpid takes no argument and accesses no memory.
    let pid = unsafe { syscall(libc::SYS_getpid, []) } as i32;
    setup.birth.store(pid, Ordering::SeqCst);
    let failure = match prepare(setup) {
        Ok(()) => {
            setup.request.place.iter().for_each(|place| place.executes());
            execute(setup)
        }
        Err(failure) => failure,
    };
    setup.request.place.iter().for_each(|place| place.has_failed());
    setup.failure.set(Some(failure));
    end(127)
}

/// A child that exits at once.
///
/// # Safety
/// Must run in its own process; see [`enter`].
pub(super) unsafe extern "C" fn leave(_: *mut c_void) -> ! {
    end(0)
}

fn end(code: usize) -> ! {
    loop {
        // SAFETY: this ends only this process, which is not a thread of the spawner.
        unsafe { syscall(libc::SYS_exit_group, [code, 0, 0, 0]) };
    }
}

/// Everything before the program, in this order. The signal mask comes last: until then no signal
/// can run anything here.
fn prepare(setup: &Setup<'_>) -> Result<(), Failure> {
    if let Some(gate) = &setup.request.gate {
        // Do this first, while the child may still access the server's own files.
        let here = libc::AT_FDCWD as isize as usize;
        call(Step::Gate, libc::SYS_unlinkat, [here, gate.as_ptr() as usize, 0])?;
    }
    call(Step::Session, libc::SYS_setsid, [0; 4])?;
    for (target, stream) in setup.streams.iter().enumerate() {
        call(Step::Streams, libc::SYS_dup3, [number(*stream), target, 0])?;
    }
    if let Output::Pty(_) = setup.request.output {
        // Uses standard output, since standard input may be closed. The session has no terminal
        // yet.
        call(Step::Terminal, libc::SYS_ioctl, [1, libc::TIOCSCTTY as usize, 0, 0])?;
    }
    reset_signals(setup.reset.get())?;
    let confining = setup.confining.as_ref();
    confining.map_or(Ok(()), Confining::apply_mounts)?;
    if !confining.map_or(Ok(false), Confining::enter_cwd)? {
        call(Step::Cwd, libc::SYS_chdir, [setup.request.cwd.as_ptr() as usize])?;
    }
    confining.map_or(Ok(()), Confining::drop_privileges)?;
    close_from(3)?;
    confining.map_or(Ok(()), Confining::mark)?;
    if let Some(limits) = setup.descriptors {
        set_limits(libc::RLIMIT_NOFILE as usize, limits)?;
    }
    if let Some(limits) = setup.core_dumps {
        set_limits(libc::RLIMIT_CORE as usize, limits)?;
    }
    for (which, limits) in setup.rlimits.into_iter().flatten() {
        set_limits(which, limits)?;
    }
    for (which, limits) in setup.tag.into_iter().flatten() {
        // If the system has no such limit, trees are told apart by their other marks.
        _ = set_limits(which, limits);
    }
    let empty_mask = 0u64;
    let how = libc::SIG_SETMASK.unsigned_abs() as usize;
    let mask = ptr::from_ref(&empty_mask) as usize;
    call(Step::Signals, libc::SYS_rt_sigprocmask, [how, mask, 0, size_of::<u64>()]).map(drop)
}

/// Resets these signals to their default action: an ignored one would otherwise stay ignored over
/// exec.
fn reset_signals(signals: u64) -> Result<(), Failure> {
    // The kernel's struct sigaction: handler, flags, restorer, mask. All zero is SIG_DFL.
    let default = [0u64; 4];
    let mut left = signals;
    while left != 0 {
        let (signal, action) = (left.trailing_zeros() as usize + 1, default.as_ptr() as usize);
        call(Step::Signals, libc::SYS_rt_sigaction, [signal, action, 0, size_of::<u64>()])?;
        left &= left - 1;
    }
    Ok(())
}

pub(super) fn set_limits(which: usize, limits: SoftAndHard) -> Result<(), Failure> {
    call(Step::Limits, libc::SYS_prlimit64, [0, which, limits.as_ptr() as usize, 0]).map(drop)
}

/// Closes every descriptor from `first` on. A seccomp filter may refuse the call here although it
/// allowed it to the spawner. Then close-on-exec in the spawner's private table has to do.
fn close_from(first: usize) -> Result<(), Failure> {
    match call(Step::Descriptors, libc::SYS_close_range, [first, u32::MAX as usize, 0, 0]) {
        Err(Failure { errno: Errno::NOSYS | Errno::PERM, .. }) => Ok(()),
        answer => answer.map(drop),
    }
}

/// Tries each path; returns only if none could be executed.
///
/// The rules are those of `execvp`: a path that does not lead to a file is skipped, a file that may
/// not be executed is remembered, any other error ends the search.
fn execute(setup: &Setup<'_>) -> Failure {
    let mut verdict = Errno::NOENT;
    let (argv, env) = (setup.argv.as_ptr() as usize, setup.env.as_ptr() as usize);
    for program in &setup.request.programs {
        let args = [program.as_ptr() as usize, argv, env];
        match call(Step::Program, libc::SYS_execve, args) {
            Err(Failure { errno: Errno::NOENT | Errno::NOTDIR, .. }) | Ok(_) => {}
            Err(Failure { errno: Errno::ACCESS, .. }) => verdict = Errno::ACCESS,
            Err(failure) => return failure,
        }
    }
    Failure { step: Step::Program, errno: verdict }
}

/// Makes one raw call and returns its result. Every argument is a number or a pointer into the
/// spawner's memory, which stays live and unchanged until this process has executed its program.
pub(super) fn call<const N: usize>(
    step: Step,
    number: i64,
    args: [usize; N],
) -> Result<usize, Failure> {
    // SAFETY: only the child's steps call this, with arguments that are valid for their calls; they
    // point to memory of the `Setup` or of a caller's frame.
    check(unsafe { syscall(number, args) }).map_err(|errno| Failure { step, errno })
}
