//! Creates the process like vfork, so that the cost does not grow with the spawner's memory.

use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, waitpid,
};

use super::request::Failure;
use super::setup::{Setup, enter, leave};
use crate::own_signals::{self, change_mask};
use crate::raw::{Entry, check, clone, number};
use crate::{Child, Status};

/// 64 KiB: the child uses only a few frames, even in debug builds.
const STACK_SIZE: usize = 64 * 1024;

/// The system call that creates the process. The child is the same either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    Clone3,
    /// For kernels and containers that refuse `clone3`.
    Clone,
}

/// A created process, by pid and pidfd.
pub(super) type NewProcess = (Pid, OwnedFd);

/// Memory for a child's stack, reused by a spawner for each child.
#[derive(Debug)]
pub(super) struct Stack {
    base: *mut c_void,
}

/// Below the stack and never accessible: an overflow faults instead of overwriting other memory.
const GUARD_SIZE: usize = 64 * 1024;

impl Stack {
    pub(super) fn new() -> Result<Self, Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::STACK | MapFlags::NORESERVE;
        let size = GUARD_SIZE + STACK_SIZE;
        // SAFETY: a new mapping at an address chosen by the kernel aliases nothing.
        let map = unsafe { mmap_anonymous(ptr::null_mut(), size, ProtFlags::empty(), flags) }?;
        let base = map.wrapping_byte_add(GUARD_SIZE);
        // SAFETY: the range is the upper part of the mapping made above.
        unsafe { mprotect(base, STACK_SIZE, MprotectFlags::READ | MprotectFlags::WRITE) }?;
        Ok(Self { base })
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let map = self.base.wrapping_byte_sub(GUARD_SIZE);
        // SAFETY: the mapping is ours, and no child runs on it: clone returns only after the child
        // has left it.
        _ = unsafe { munmap(map, GUARD_SIZE + STACK_SIZE) };
    }
}

/// Creates a process that runs [`enter`] on `stack`, and returns once it has executed its program
/// or exited. Only `clone3` can create it in a cgroup.
pub(super) fn spawn(
    plan: &Setup<'_>,
    stack: &mut Stack,
    mechanism: Mechanism,
    cgroup: Option<BorrowedFd<'_>>,
) -> Result<NewProcess, Errno> {
    let mut args = clone_args(stack, cgroup);
    args.flags |= u64::from(plan.namespaces());
    args.exit_signal = libc::SIGCHLD as u64;
    if let Some(word) = plan.pid_word() {
        args.flags |= libc::CLONE_PARENT_SETTID as u64;
        args.parent_tid = word.as_ptr() as u64;
    }
    match mechanism {
        // Handlers of this program must not run in the child, which shares its memory.
        Mechanism::Clone3 => args.flags |= CLEAR_SIGHAND,
        Mechanism::Clone if cgroup.is_some() => return Err(Errno::NOSYS),
        // The child inherits our handlers, so it resets every signal itself.
        Mechanism::Clone => plan.reset.set(own_signals::ALL),
    }
    // SAFETY: `enter`'s contract holds: our caller borrows the setup and is suspended until the
    // child has left it, and all signals are blocked.
    unsafe { create(mechanism, args, plan.pass(), (enter, ptr::from_ref(plan).cast_mut().cast())) }
}

/// The process, if its setup has not failed. Otherwise it has exited by itself, and the failure says
/// more than its status.
pub(super) fn unless_failed(
    (pid, pidfd): NewProcess,
    failure: Option<Failure>,
) -> Result<NewProcess, Failure> {
    let Some(failure) = failure else { return Ok((pid, pidfd)) };
    _ = Child::new(pid, pidfd).reap();
    Err(failure)
}

/// Probes whether a child can be created with these flags, in this cgroup. The child exits at once;
/// blocks until then. Returns its pidfd; it is reaped.
pub(crate) fn try_clone(flags: i32, cgroup: Option<BorrowedFd<'_>>) -> Result<OwnedFd, Errno> {
    let stack = Stack::new()?;
    let mut args = clone_args(&stack, cgroup);
    // There is no exit signal, so no other part of the program learns of this child.
    args.flags |= u64::from(flags.cast_unsigned());
    // SAFETY: `leave` uses neither its argument nor any memory.
    let (_, pidfd) = unsafe { create(Mechanism::Clone3, args, 0, (leave, ptr::null_mut())) }?;
    // A child without an exit signal is only found with `__WALL`.
    match crate::child::wait(pidfd.as_fd(), libc::WEXITED | libc::__WALL) {
        Ok(Some((Status::Exited(0), _))) => Ok(pidfd),
        // Our own cgroup was killed before we entered it: see `Cgroup`.
        _ => Err(Errno::CANCELED),
    }
}

/// Opens it in the caller's own table: an open cgroup must not leak into another child.
pub(crate) fn open_cgroup(folder: impl rustix::path::Arg) -> Result<OwnedFd, Errno> {
    rustix::fs::open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Blocks even the signals that libc reserves while the child shares our memory: a handler that
/// runs in the child would affect both.
///
/// # Safety
/// The child must be able to run `entry` on the stack in `args`, which nothing else uses.
unsafe fn create(
    mechanism: Mechanism,
    mut args: libc::clone_args,
    pass: u64,
    entry: Entry,
) -> Result<NewProcess, Errno> {
    let mut pidfd = -1i32;
    args.pidfd = ptr::from_mut(&mut pidfd) as u64;
    // Plain clone has one place for either number. The pid must be known from the first instruction
    // on; the pidfd can be opened later, for as long as the child is not reaped.
    let only_pid = mechanism == Mechanism::Clone && args.parent_tid != 0;
    let reserve = only_pid.then(reserve_descriptor).transpose()?;
    if only_pid {
        args.flags &= !(libc::CLONE_PIDFD as u64);
        args.pidfd = args.parent_tid;
    }
    let (call, numbers) = match mechanism {
        Mechanism::Clone3 => {
            let place = ptr::from_ref(&args) as usize;
            (libc::SYS_clone3, [place, size_of::<libc::clone_args>(), 0])
        }
        Mechanism::Clone => {
            let (flags, stack_top) = (args.flags | args.exit_signal, args.stack + args.stack_size);
            (libc::SYS_clone, [flags as usize, stack_top as usize, args.pidfd as usize])
        }
    };
    let mask = change_mask(libc::SIG_SETMASK, u64::MAX);
    // SAFETY: the arguments and the pidfd's place are live during the call; the stack is ours and
    // unused, and its size is a multiple of 16; we are suspended (CLONE_VFORK) until the child has
    // left it; the caller answers for `entry`.
    let pid = check(unsafe { clone(call, numbers, pass, entry) });
    change_mask(libc::SIG_SETMASK, mask);
    let pid = Pid::from_raw(pid? as i32).ok_or(Errno::CHILD)?;
    if only_pid {
        drop(reserve);
        let pidfd = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| end_unwatched(pid));
        return Ok((pid, pidfd?));
    }
    // SAFETY: the kernel created this descriptor for us in the call above, and nothing else has it.
    Ok((pid, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

/// A descriptor in the place of one that must not be refused once the child runs. The table is this
/// thread's own, so nothing else takes its number when it is closed.
fn reserve_descriptor() -> Result<OwnedFd, Errno> {
    pidfd_open(getpid(), PidfdFlags::empty())
}

/// For a child that nothing could ever watch, because the whole system has no descriptor left.
fn end_unwatched(pid: Pid) {
    // It is our child and not reaped, so the number is its own.
    _ = kill_process(pid, Signal::KILL);
    _ = waitpid(Some(pid), WaitOptions::empty());
}

fn clone_args(stack: &Stack, cgroup: Option<BorrowedFd<'_>>) -> libc::clone_args {
    // SAFETY: all-zero is a valid clone_args: no flags, no pointers.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = (libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD) as u64;
    args.stack = stack.base as u64;
    args.stack_size = STACK_SIZE as u64;
    if let Some(cgroup) = cgroup {
        args.flags |= INTO_CGROUP;
        args.cgroup = number(cgroup) as u64;
    }
    args
}

/// libc's constant has the wrong type: <https://github.com/rust-lang/libc/issues/3584>.
const INTO_CGROUP: u64 = 1 << 33;
/// Gives the child the default action for every signal that is not ignored (Linux 5.5 and later).
const CLEAR_SIGHAND: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI32, Ordering};

    use super::*;

    /// A worker that is killed before the child's first instruction leaves a child that is known.
    #[test]
    fn the_kernel_writes_the_pid_of_a_child_that_does_nothing() {
        static WORD: AtomicI32 = AtomicI32::new(0);
        for mechanism in [Mechanism::Clone3, Mechanism::Clone] {
            let stack = Stack::new().unwrap();
            let mut args = clone_args(&stack, None);
            args.flags |= libc::CLONE_PARENT_SETTID as u64;
            args.parent_tid = WORD.as_ptr() as u64;
            args.exit_signal = libc::SIGCHLD as u64;
            // SAFETY: `leave` uses neither its argument nor any memory.
            let made = unsafe { create(mechanism, args, 0, (leave, ptr::null_mut())) };
            let (pid, pidfd) = made.unwrap();
            assert_eq!(WORD.swap(0, Ordering::SeqCst), pid.as_raw_nonzero().get());
            assert_eq!(Child::new(pid, pidfd).reap().unwrap().status, Status::Exited(0));
        }
    }
}
