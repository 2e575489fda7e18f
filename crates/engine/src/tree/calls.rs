//! Which system calls wait to read something, and where their arguments say what.

/// The machines whose numbers of calls are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Machine {
    X86_64,
    Aarch64,
}

/// What a call waits for, as far as it is about reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitsFor {
    /// To read this descriptor.
    Read(i32),
    /// One of an array of `pollfd`.
    Poll { address: u64, count: u64 },
    /// The same, or a time or a lock: a call that was interrupted and goes on. It has the arguments of the
    /// call that it was.
    Restarted { address: u64, count: u64 },
    /// One of a set of bits.
    Select { address: u64, count: u64 },
    /// Something that is added to this descriptor.
    Epoll(i32),
    /// Anything: a ring does not tell what was put into it.
    Ring,
    /// Nothing that is read: a time, a child, a lock, a signal.
    Other,
}

/// The numbers of one machine. A machine without a call has a newer one instead.
struct Numbers {
    /// The descriptor is the first argument.
    reads: &'static [u64],
    /// The descriptor is the second argument.
    sends: u64,
    polls: &'static [u64],
    selects: &'static [u64],
    epolls: &'static [u64],
    ring: u64,
    restart: u64,
}

/// In this order: read, pread64, readv, preadv, preadv2, splice, tee, `copy_file_range`; sendfile;
/// poll, ppoll; select, pselect6; `epoll_wait`, `epoll_pwait`, `epoll_pwait2`; `io_uring_enter`;
/// `restart_syscall`.
const X86_64: Numbers = Numbers {
    reads: &[0, 17, 19, 295, 327, 275, 276, 326],
    sends: 40,
    polls: &[7, 271],
    selects: &[23, 270],
    epolls: &[232, 281, 441],
    ring: 426,
    restart: 219,
};

/// As above, without poll, select and `epoll_wait`.
const AARCH64: Numbers = Numbers {
    reads: &[63, 67, 65, 69, 286, 76, 77, 285],
    sends: 71,
    polls: &[73],
    selects: &[72],
    epolls: &[22, 441],
    ring: 426,
    restart: 128,
};

impl Machine {
    /// This one, if it is known.
    pub(super) const fn ours() -> Option<Self> {
        if cfg!(target_arch = "x86_64") {
            Some(Self::X86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Self::Aarch64)
        } else {
            None
        }
    }

    pub(super) fn waits_for(self, number: u64, arguments: [u64; 6]) -> WaitsFor {
        let numbers = match self {
            Self::X86_64 => &X86_64,
            Self::Aarch64 => &AARCH64,
        };
        let [first, second, ..] = arguments;
        match number {
            _ if numbers.reads.contains(&number) => WaitsFor::Read(descriptor(first)),
            _ if number == numbers.sends => WaitsFor::Read(descriptor(second)),
            _ if numbers.polls.contains(&number) => {
                WaitsFor::Poll { address: first, count: second }
            }
            _ if numbers.selects.contains(&number) => {
                WaitsFor::Select { address: second, count: first & 0xffff_ffff }
            }
            _ if numbers.epolls.contains(&number) => WaitsFor::Epoll(descriptor(first)),
            _ if number == numbers.ring => WaitsFor::Ring,
            _ if number == numbers.restart => WaitsFor::Restarted { address: first, count: second },
            _ => WaitsFor::Other,
        }
    }
}

/// The upper half of a register is not a part of an `int`.
fn descriptor(register: u64) -> i32 {
    register as u32 as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_reads_names_what_it_reads() {
        let check = |machine: Machine, number, want| {
            let arguments = [3, 0x1000, 5, 6, 7, 8];
            assert_eq!(machine.waits_for(number, arguments), want, "{machine:?} {number}");
        };
        let poll = WaitsFor::Poll { address: 3, count: 0x1000 };
        let select = WaitsFor::Select { address: 0x1000, count: 3 };
        let restarted = WaitsFor::Restarted { address: 3, count: 0x1000 };
        let x86_64 = [
            // read, pread64, readv, preadv, preadv2, splice, tee, copy_file_range, sendfile
            (&[0, 17, 19, 295, 327, 275, 276, 326][..], WaitsFor::Read(3)),
            (&[40], WaitsFor::Read(0x1000)),
            (&[7, 271], poll),
            (&[23, 270], select),
            (&[232, 281, 441], WaitsFor::Epoll(3)),
            (&[426], WaitsFor::Ring),
            (&[219], restarted),
            // write, wait4, nanosleep, futex, pause, rt_sigsuspend, accept, clock_nanosleep, waitid
            (&[1, 61, 35, 202, 34, 130, 43, 230, 247], WaitsFor::Other),
        ];
        let aarch64 = [
            (&[63, 67, 65, 69, 286, 76, 77, 285][..], WaitsFor::Read(3)),
            (&[71], WaitsFor::Read(0x1000)),
            (&[73], poll),
            (&[72], select),
            (&[22, 441], WaitsFor::Epoll(3)),
            (&[426], WaitsFor::Ring),
            (&[128], restarted),
            // write, wait4, nanosleep, futex, rt_sigsuspend, accept, clock_nanosleep, waitid, and
            // what reads on the other machine
            (&[64, 260, 101, 98, 133, 202, 115, 95, 0, 7, 23], WaitsFor::Other),
        ];
        for (machine, table) in [(Machine::X86_64, x86_64), (Machine::Aarch64, aarch64)] {
            for (numbers, want) in table {
                numbers.iter().for_each(|number| check(machine, *number, want));
            }
        }
    }

    #[test]
    fn a_descriptor_is_the_lower_half_of_its_register() {
        let read = |register| Machine::X86_64.waits_for(0, [register, 0, 0, 0, 0, 0]);
        assert_eq!(read(0xffff_ffff_0000_0002), WaitsFor::Read(2));
        assert_eq!(read(0xffff_ffff), WaitsFor::Read(-1));
    }
}
