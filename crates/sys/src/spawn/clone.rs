//! Making the process: vfork-like, so that its cost does not grow with the spawner's memory.

use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use rustix::process::Pid;

use super::setup::{Setup, enter, leave};
use crate::Status;
use crate::raw::{check, clone, clone3, syscall};

/// 64 KiB: the child's code is a handful of frames, in debug builds too.
const STACK_SIZE: usize = 64 * 1024;

/// Which system call makes the process; the child is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    Clone3,
    /// For kernels and containers that refuse `clone3`.
    Clone,
}

/// Memory for a child's stack, kept by a spawner from one child to the next.
#[derive(Debug)]
pub(super) struct Stack {
    base: *mut c_void,
}

/// Below the stack, never mapped: an overflow is a fault, not a write into somebody's memory.
const GUARD_SIZE: usize = 64 * 1024;

impl Stack {
    pub(super) fn new() -> Result<Self, Errno> {
        let flags = MapFlags::PRIVATE | MapFlags::STACK | MapFlags::NORESERVE;
        let size = GUARD_SIZE + STACK_SIZE;
        // SAFETY: a fresh mapping at an address of the kernel's choice aliases nothing.
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
        // SAFETY: the mapping is ours, and no child runs on it: clone returns when it has left.
        _ = unsafe { munmap(map, GUARD_SIZE + STACK_SIZE) };
    }
}

/// Makes a process that runs [`enter`] on `stack`, and returns once it has executed its program
/// or ended. Only `clone3` can make it in a leaf.
pub(super) fn spawn(
    setup: &Setup<'_>,
    stack: &mut Stack,
    mechanism: Mechanism,
    leaf: Option<BorrowedFd<'_>>,
) -> Result<(Pid, OwnedFd), Errno> {
    let (namespaces, pass) = (setup.namespaces(), setup.pass());
    let setup = ptr::from_ref(setup).cast_mut().cast::<c_void>();
    let mask = block_all_signals();
    let answer = match (mechanism, leaf) {
        (Mechanism::Clone3, leaf) => with_clone3((setup, pass), stack, leaf, namespaces),
        (Mechanism::Clone, None) => with_clone((setup, pass), stack, namespaces),
        (Mechanism::Clone, Some(_)) => Err(Errno::NOSYS),
    };
    restore_signals(mask);
    let (pid, pidfd) = answer?;
    // SAFETY: the kernel made this descriptor for us in the call above and nobody else has it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    Ok((Pid::from_raw(pid).ok_or(Errno::CHILD)?, pidfd))
}

fn with_clone3(
    (setup, pass): (*mut c_void, u64),
    stack: &Stack,
    leaf: Option<BorrowedFd<'_>>,
    namespaces: u32,
) -> Result<(i32, i32), Errno> {
    let mut pidfd = -1i32;
    let mut args = clone_args(stack, leaf);
    args.flags |= u64::from(namespaces);
    args.pidfd = ptr::from_mut(&mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: the arguments are live over the call; the stack is ours and unused, its size is a
    // multiple of 16; `enter`'s contract holds: `setup` is borrowed by our caller, who is
    // suspended (CLONE_VFORK) until the child has left, and all signals are blocked.
    let pid = check(unsafe { clone3(&raw const args, (enter, setup), pass) })?;
    Ok((pid as i32, pidfd))
}

/// Makes a child in a leaf that ends at once, to see whether that can be done. Blocks until then.
pub(crate) fn clone_into(leaf: impl AsFd) -> Result<(), Errno> {
    try_clone(0, Some(leaf.as_fd())).map(drop)
}

/// The same with these flags and without a leaf; returns the pidfd of the child, which is reaped.
pub(crate) fn clone_with(flags: i32) -> Result<OwnedFd, Errno> {
    try_clone(u64::from(flags.cast_unsigned()), None)
}

fn try_clone(flags: u64, leaf: Option<BorrowedFd<'_>>) -> Result<OwnedFd, Errno> {
    let stack = Stack::new()?;
    let mut pidfd = -1i32;
    let mut args = clone_args(&stack, leaf);
    args.flags |= flags;
    args.pidfd = ptr::from_mut(&mut pidfd) as u64;
    // Without a signal for its end nobody but us hears of it.
    let mask = block_all_signals();
    // SAFETY: as in `with_clone3`; `leave` uses neither its argument nor any memory.
    let answer = check(unsafe { clone3(&raw const args, (leave, ptr::null_mut()), 0) });
    restore_signals(mask);
    answer?;
    // SAFETY: the kernel made this descriptor for us in the call above and nobody else has it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    match crate::child::wait_for_clone(pidfd.as_fd()) {
        Some(Status::Exited(0)) => Ok(pidfd),
        // Our own cgroup was killed before we came into it: see `Leaf`.
        _ => Err(Errno::CANCELED),
    }
}

fn clone_args(stack: &Stack, leaf: Option<BorrowedFd<'_>>) -> libc::clone_args {
    // SAFETY: all-zero is a valid clone_args: no flags, no pointers.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = FLAGS as u64;
    args.stack = stack.base as u64;
    args.stack_size = STACK_SIZE as u64;
    if let Some(leaf) = leaf {
        args.flags |= INTO_CGROUP;
        args.cgroup = u64::from(leaf.as_raw_fd().unsigned_abs());
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

/// Libc's own constant has the wrong type: <https://github.com/rust-lang/libc/issues/3584>.
const INTO_CGROUP: u64 = 1 << 33;
const FLAGS: usize = (libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD) as usize;

/// Blocks even the signals libc keeps to itself: the child shares our memory, and a handler that
/// ran in it would run in both.
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
    // SAFETY: both masks are live and 8 bytes, the kernel's own size for them.
    unsafe { syscall(libc::SYS_rt_sigprocmask, [how, new, place, size_of::<u64>()]) };
    old
}
