//! The two operations that need assembly: a system call that does not touch `errno`, and a clone
//! whose child starts in a function of ours on its own stack.
//!
//! A child made with `CLONE_VM` shares the parent's memory, including the thread-local `errno`, so
//! it must not call libc. The child is entered inside the assembly block, so no Rust frame returns
//! twice.

use std::arch::asm;
use std::ffi::c_void;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// The child's entry point, which never returns, and its argument.
pub(crate) type Entry = (unsafe extern "C" fn(*mut c_void) -> !, *mut c_void);

/// The kernel's return value as a result: values in `-4095..0` are error numbers.
pub(crate) fn check(answer: isize) -> Result<usize, Errno> {
    match answer {
        -4095..=-1 => Err(Errno::from_raw_os_error(answer.unsigned_abs() as i32)),
        value => Ok(value.unsigned_abs()),
    }
}

/// A descriptor as an argument of a system call.
pub(crate) fn number(descriptor: BorrowedFd<'_>) -> usize {
    descriptor.as_raw_fd().unsigned_abs() as usize
}

/// A system call with up to six arguments; missing ones are 0.
///
/// # Safety
/// The arguments must be valid for the call, and what they point to must live as long as the call
/// needs it.
pub(crate) unsafe fn syscall<const N: usize>(number: i64, args: [usize; N]) -> isize {
    let mut all = [0; 6];
    for (place, arg) in all.iter_mut().zip(args) {
        *place = arg;
    }
    let answer: isize;
    // SAFETY: the instruction clobbers only rcx and r11, which are declared; what the call does
    // with the arguments is the caller's contract.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => answer,
            in("rdi") all[0], in("rsi") all[1], in("rdx") all[2], in("r10") all[3],
            in("r8") all[4], in("r9") all[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    // SAFETY: the instruction changes only x0; what the call does with the arguments is the
    // caller's contract.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("svc #0", in("x8") number, inlateout("x0") all[0] => answer,
            in("x1") all[1], in("x2") all[2], in("x3") all[3],
            in("x4") all[4], in("x5") all[5], options(nostack));
    }
    answer
}

/// `clone` or `clone3`, by number, with its first three arguments and the pass as its sixth, which
/// neither call uses. The child starts at `entry`.
///
/// # Safety
/// The arguments must be valid for the call. They must give the child an aligned stack of its own, on
/// which `entry` can run.
pub(crate) unsafe fn clone(number: i64, args: [usize; 3], pass: u64, (entry, arg): Entry) -> isize {
    let answer: isize;
    // SAFETY: the parent falls through with only rax, rcx and r11 changed. The child has rax 0 and
    // its own aligned stack (the caller's contract) and jumps to `entry`, which never returns, so
    // nothing in this frame is used twice.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("syscall", "test rax, rax", "jnz 2f",
            "xor ebp, ebp", "mov rdi, r12", "call r13", "ud2", "2:",
            inlateout("rax") number as isize => answer,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2], in("r10") 0, in("r8") 0,
            in("r9") pass, in("r12") arg, in("r13") entry,
            lateout("rcx") _, lateout("r11") _);
    }
    // SAFETY: the parent falls through with only x0 changed. The child has x0 0 and its own aligned
    // stack (the caller's contract) and jumps to `entry`, which never returns.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("svc #0", "cbnz x0, 2f",
            "mov x29, xzr", "mov x30, xzr", "mov x0, x20", "blr x21", "brk #1", "2:",
            in("x8") number, inlateout("x0") args[0] => answer,
            in("x1") args[1], in("x2") args[2], in("x3") 0, in("x4") 0, in("x5") pass,
            in("x20") arg, in("x21") entry);
    }
    answer
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("lastbyte needs its clone written for this processor: see crates/sys/src/raw.rs");
