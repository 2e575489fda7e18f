//! Creates the process like vfork, so that the cost does not grow with the spawner's memory.

use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use rustix::process::Pid;

use super::setup::{Setup, enter, leave};
use crate::Status;
use crate::raw::{check, clone, clone3, syscall};

/// 64 KiB: the child uses only a few frames, even in debug builds.
const STACK_SIZE: usize = 64 * 1024;

/// The system call that creates the process. The child is the same either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    Clone3,
    /// For kernels and containers that refuse `clone3`.
    Clone,
}

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
) -> Result<(Pid, OwnedFd), Errno> {
    let (namespaces, pass) = (plan.namespaces(), plan.pass());
    let setup = ptr::from_ref(plan).cast_mut().cast::<c_void>();
    let mask = block_all_signals();
    let answer = match (mechanism, cgroup) {
        (Mechanism::Clone3, cgroup) => with_clone3((setup, pass), stack, cgroup, namespaces),
        (Mechanism::Clone, None) => {
            plan.reset_all_signals();
            with_clone((setup, pass), stack, namespaces)
        }
        (Mechanism::Clone, Some(_)) => Err(Errno::NOSYS),
    };
    restore_signals(mask);
    let (pid, pidfd) = answer?;
    // SAFETY: the kernel created this descriptor for us in the call above, and nothing else has it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok((Pid::from_raw(pid).ok_or(Errno::CHILD)?, pidfd))
}

fn with_clone3(
    (setup, pass): (*mut c_void, u64),
    stack: &Stack,
    cgroup: Option<BorrowedFd<'_>>,
    namespaces: u32,
) -> Result<(i32, i32), Errno> {
    let mut pidfd = -1i32;
    let mut args = clone_args(stack, cgroup);
    // Handlers of this program must not run in the child, which shares its memory.
    args.flags |= u64::from(namespaces) | CLEAR_SIGHAND;
    args.pidfd = ptr::from_mut(&mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: the arguments are live during the call; the stack is ours and unused, and its size is
    // a multiple of 16; `enter`'s contract holds: our caller borrows `setup` and is suspended
    // (CLONE_VFORK) until the child has left it, and all signals are blocked.
    let pid = check(unsafe { clone3(&raw const args, (enter, setup), pass) })?;
    Ok((pid as i32, pidfd))
}

/// Probes whether a child can be created in a cgroup. The child exits at once; blocks until then.
pub(crate) fn clone_into(cgroup: impl AsFd) -> Result<(), Errno> {
    try_clone(0, Some(cgroup.as_fd())).map(drop)
}

/// The same with these flags and without a cgroup. Returns the pidfd of the child, which is reaped.
pub(crate) fn clone_with(flags: i32) -> Result<OwnedFd, Errno> {
    try_clone(u64::from(flags.cast_unsigned()), None)
}

fn try_clone(flags: u64, cgroup: Option<BorrowedFd<'_>>) -> Result<OwnedFd, Errno> {
    let stack = Stack::new()?;
    let mut pidfd = -1i32;
    let mut args = clone_args(&stack, cgroup);
    args.flags |= flags;
    args.pidfd = ptr::from_mut(&mut pidfd) as u64;
    // There is no exit signal, so no other part of the program learns of this child.
    let mask = block_all_signals();
    // SAFETY: as in `with_clone3`; `leave` uses neither its argument nor any memory.
    let answer = check(unsafe { clone3(&raw const args, (leave, ptr::null_mut()), 0) });
    restore_signals(mask);
    answer?;
    // SAFETY: the kernel created this descriptor for us in the call above, and nothing else has it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    match crate::child::wait_for_clone(pidfd.as_fd()) {
        Some(Status::Exited(0)) => Ok(pidfd),
        // Our own cgroup was killed before we entered it: see `Cgroup`.
        _ => Err(Errno::CANCELED),
    }
}

fn clone_args(stack: &Stack, cgroup: Option<BorrowedFd<'_>>) -> libc::clone_args {
    // SAFETY: all-zero is a valid clone_args: no flags, no pointers.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = FLAGS as u64;
    args.stack = stack.base as u64;
    args.stack_size = STACK_SIZE as u64;
    if let Some(cgroup) = cgroup {
        args.flags |= INTO_CGROUP;
        args.cgroup = u64::from(cgroup.as_raw_fd().unsigned_abs());
    }
    args
}

fn with_clone(
    (setup, pass): (*mut c_void, u64),
    stack: &Stack,
    namespaces: u32,
) -> Result<(i32, i32), Errno> {
    let mut pidfd = -1i32;
    let flags = FLAGS | libc::SIGCHLD as usize | namespaces as usize;
    let top = stack.base as usize + STACK_SIZE;
    // SAFETY: as in `with_clone3`.
    let pid = check(unsafe { clone(flags, top, &raw mut pidfd, (enter, setup), pass) })?;
    Ok((pid as i32, pidfd))
}

/// libc's constant has the wrong type: <https://github.com/rust-lang/libc/issues/3584>.
const INTO_CGROUP: u64 = 1 << 33;
/// Gives the child the default action for every signal that is not ignored (Linux 5.5 and later).
const CLEAR_SIGHAND: u64 = 1 << 32;
const FLAGS: usize = (libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD) as usize;

/// Blocks even the signals that libc reserves. The child shares our memory, so a handler that runs
/// in the child would affect both.
fn block_all_signals() -> u64 {
    let all = u64::MAX;
    set_mask(&all)
}

fn restore_signals(mask: u64) {
    set_mask(&mask);
}

fn set_mask(mask: &u64) -> u64 {
    let mut old = 0u64;
    let (new, place) = (ptr::from_ref(mask) as usize, ptr::from_mut(&mut old) as usize);
    let how = libc::SIG_SETMASK.unsigned_abs() as usize;
    // SAFETY: both masks are live and 8 bytes, the size the kernel uses.
    unsafe { syscall(libc::SYS_rt_sigprocmask, [how, new, place, size_of::<u64>()]) };
    old
}
