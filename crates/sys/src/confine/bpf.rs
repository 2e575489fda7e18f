//! BPF instructions for seccomp, and the data a filter sees.

use libc::sock_filter;

pub(super) fn load(field: u32) -> sock_filter {
    statement(LOAD, field)
}

pub(super) fn answer(action: u32) -> sock_filter {
    statement(RETURN, action)
}

pub(super) fn statement(code: u16, value: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k: value }
}

pub(super) fn jump(code: u16, value: u32, if_so: u8, if_not: u8) -> sock_filter {
    sock_filter { code, jt: if_so, jf: if_not, k: value }
}

pub(super) const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
pub(super) const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
pub(super) const XOR: u16 = (libc::BPF_ALU | libc::BPF_XOR | libc::BPF_K) as u16;
pub(super) const KEEP: u16 = (libc::BPF_MISC | libc::BPF_TAX) as u16;
pub(super) const OR_KEPT: u16 = (libc::BPF_ALU | libc::BPF_OR | libc::BPF_X) as u16;
pub(super) const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
pub(super) const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
pub(super) const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
pub(super) const JUMP_IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
pub(super) const JUMP_IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;

pub(super) const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
pub(super) const KILL: u32 = libc::SECCOMP_RET_KILL_PROCESS;
pub(super) const REFUSE: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
pub(super) const ABSENT: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

// The data of a call: number, architecture, address, six arguments.
pub(super) const NUMBER_FIELD: u32 = 0;
pub(super) const ARCHITECTURE_FIELD: u32 = 4;

/// The lower half of an argument; both architectures are little-endian.
pub(super) const fn argument(number: u32) -> u32 {
    16 + 8 * number
}

/// Interprets the instructions used here: what a program returns for this data.
#[cfg(test)]
pub(super) fn run(program: &[sock_filter], data: &[u8]) -> u32 {
    let (mut accumulator, mut kept, mut at) = (0u32, 0u32, 0usize);
    loop {
        let sock_filter { code, jt, jf, k } = program[at];
        let branch = |yes: bool| usize::from(if yes { jt } else { jf });
        at += 1;
        match code {
            LOAD => {
                let field = &data[k as usize..k as usize + 4];
                accumulator = u32::from_le_bytes(field.try_into().expect("four bytes"));
            }
            AND => accumulator &= k,
            XOR => accumulator ^= k,
            KEEP => kept = accumulator,
            OR_KEPT => accumulator |= kept,
            RETURN => return k,
            JUMP => at += k as usize,
            JUMP_IF_EQUAL => at += branch(accumulator == k),
            JUMP_IF_AT_LEAST => at += branch(accumulator >= k),
            JUMP_IF_ANY_BIT => at += branch(accumulator & k != 0),
            other => panic!("unknown instruction {other}"),
        }
    }
}
