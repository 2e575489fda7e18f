//! The seccomp filter, as a BPF program.
//!
//! It decides by binary search over the call numbers. The kernel compiles the program when it is
//! installed and tries it for every call there is, which takes 0.1 ms or more; freeing it takes as
//! long again. So a thread that starts confined commands installs it once, and its children inherit
//! it. The start itself needs some of the refused calls. It makes them with a pass: a random number
//! in an argument that the call does not use. Nothing that runs after exec can know it.

use std::fmt;
use std::ptr;
use std::sync::{Arc, OnceLock};

use libc::sock_filter;
use rustix::io::Errno;

use super::bpf::{
    ABSENT, ALLOW, AND, ARCHITECTURE_FIELD, JUMP, JUMP_IF_ANY_BIT, JUMP_IF_AT_LEAST, JUMP_IF_EQUAL,
    KEEP, KILL, NUMBER_FIELD, OR_KEPT, REFUSE, XOR, answer, argument, jump, load, statement,
};
use super::calls::{CallRule, rules};
use crate::raw::{check, syscall};

/// A program that decides every system call of a confined command.
pub struct Filter {
    program: Box<[sock_filter]>,
    pass: u64,
}

impl fmt::Debug for Filter {
    /// Omits the pass, which must not be printed anywhere.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Filter").finish_non_exhaustive()
    }
}

/// Whether a command can open connections: to other hosts, to this one, to unix sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    #[default]
    Off,
    On,
}

/// Whether modes, owners, times and attributes of files can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetadataChanges {
    Free,
    Barred,
}

impl Filter {
    /// The filter for these settings. Each is built once.
    pub fn get(network: Network, metadata: MetadataChanges) -> Arc<Self> {
        static MADE: [OnceLock<Arc<Filter>>; 4] = [const { OnceLock::new() }; 4];
        let made = &MADE[2 * network as usize + metadata as usize];
        Arc::clone(made.get_or_init(|| Arc::new(Self::new(network, metadata, draw_pass()))))
    }

    fn new(network: Network, metadata: MetadataChanges, pass: u64) -> Self {
        let mut program = vec![
            load(ARCHITECTURE_FIELD),
            // Another architecture numbers the calls differently, so nothing below would be valid.
            jump(JUMP_IF_EQUAL, ARCHITECTURE, 1, 0),
            answer(KILL),
            load(NUMBER_FIELD),
        ];
        program.extend(search(&segments(network, metadata), pass));
        Self { program: program.into(), pass }
    }

    /// Installs it for good on the calling thread and on every thread and process it creates later.
    pub(crate) fn install(&self) -> Result<(), Errno> {
        // An unprivileged thread may filter itself only once it can gain no privileges.
        rustix::thread::set_no_new_privs(true)?;
        let program = libc::sock_fprog {
            len: u16::try_from(self.program.len()).expect("a few hundred instructions"),
            filter: self.program.as_ptr().cast_mut(),
        };
        let mode = libc::SECCOMP_SET_MODE_FILTER as usize;
        let place = ptr::from_ref(&program) as usize;
        // SAFETY: the program and its instructions are live during the call, which copies them.
        check(unsafe { syscall(libc::SYS_seccomp, [mode, 0, place]) }).map(drop)
    }

    pub(crate) fn pass(&self) -> u64 {
        self.pass
    }
}

/// A number that cannot be guessed.
fn draw_pass() -> u64 {
    let mut pass = [0; 8];
    let drawn = rustix::rand::getrandom(&mut pass, rustix::rand::GetRandomFlags::empty());
    // The kernel returns this few bytes at once or not at all. Without them the filter is not safe.
    assert_eq!(drawn, Ok(pass.len()), "random numbers");
    u64::from_ne_bytes(pass)
}

/// The verdict from this number up to the next segment.
type CallRange = (u32, CallRule);

fn segments(network: Network, metadata: MetadataChanges) -> Vec<CallRange> {
    let mut rules = rules(network, metadata);
    let after: Vec<u32> = rules.keys().map(|number| number + 1).collect();
    for number in after.into_iter().chain([0]) {
        rules.entry(number).or_insert(CallRule::Allow);
    }
    rules.extend(FOREIGN_NUMBERS.map(|first| (first, CallRule::Absent)));
    let mut segments: Vec<CallRange> = rules.into_iter().collect();
    segments.dedup_by_key(|(_, verdict)| *verdict);
    segments
}

/// Halves the segments until one is left. The call number is already loaded.
fn search(segments: &[CallRange], pass: u64) -> Vec<sock_filter> {
    if let [(_, verdict)] = segments {
        return judge(*verdict, pass);
    }
    let (below, above) = segments.split_at(segments.len() / 2);
    let (low, high) = (search(below, pass), search(above, pass));
    let first = above[0].0;
    let mut program = match u8::try_from(low.len()) {
        Ok(length) => vec![jump(JUMP_IF_AT_LEAST, first, length, 0)],
        // Too far for a conditional jump.
        Err(_) => vec![jump(JUMP_IF_AT_LEAST, first, 0, 1), statement(JUMP, low.len() as u32)],
    };
    program.extend(low.into_iter().chain(high));
    program
}

fn judge(verdict: CallRule, pass: u64) -> Vec<sock_filter> {
    match verdict {
        CallRule::Allow => vec![answer(ALLOW)],
        CallRule::Refuse => vec![answer(REFUSE)],
        CallRule::Absent => vec![answer(ABSENT)],
        CallRule::Start => passed(pass, REFUSE),
        CallRule::StartOrAbsent => passed(pass, ABSENT),
        CallRule::Namespaces => [
            vec![load(argument(0)), jump(JUMP_IF_ANY_BIT, NAMESPACE_FLAGS, 1, 0), answer(ALLOW)],
            passed(pass, REFUSE),
        ]
        .concat(),
        CallRule::Control(MetadataChanges::Free) => {
            [vec![load(argument(1))], one_of(&TYPING, REFUSE), vec![answer(ALLOW)]].concat()
        }
        CallRule::Control(MetadataChanges::Barred) => [
            vec![load(argument(1))],
            one_of(&TYPING, REFUSE),
            one_of(&HARMLESS_FILE_CONTROLS, ALLOW),
            vec![statement(AND, CONTROL_FAMILY)],
            one_of(&FILE_CONTROL_FAMILIES, REFUSE),
            vec![answer(ALLOW)],
        ]
        .concat(),
        CallRule::Pair => vec![
            load(argument(0)),
            jump(JUMP_IF_EQUAL, libc::AF_UNIX as u32, 1, 0),
            answer(REFUSE),
            load(argument(1)),
            statement(AND, SOCKET_TYPE),
            // A datagram socket of a pair could still send to any address.
            jump(JUMP_IF_EQUAL, libc::SOCK_STREAM as u32, 2, 0),
            jump(JUMP_IF_EQUAL, libc::SOCK_SEQPACKET as u32, 1, 0),
            answer(REFUSE),
            answer(ALLOW),
        ],
        CallRule::Connected => is(4, 0, REFUSE),
        CallRule::OwnLimits => {
            [vec![load(argument(0)), jump(JUMP_IF_EQUAL, 0, 0, 1), answer(ALLOW)], is(2, 0, REFUSE)]
                .concat()
        }
        CallRule::Mode(mode) => mode_without_privileges(mode),
        CallRule::ModeIfMade { flags, mode } => {
            let made = jump(JUMP_IF_ANY_BIT, MAKES_A_FILE, 1, 0);
            [vec![load(argument(flags)), made, answer(ALLOW)], mode_without_privileges(mode)]
                .concat()
        }
    }
}

fn mode_without_privileges(number: u32) -> Vec<sock_filter> {
    vec![
        load(argument(number)),
        jump(JUMP_IF_ANY_BIT, libc::S_ISUID | libc::S_ISGID, 1, 0),
        answer(ALLOW),
        answer(REFUSE),
    ]
}

/// Returns `action` for these values. The kernel, too, uses only the lower half of an ioctl
/// command.
fn one_of(values: &[u32], action: u32) -> Vec<sock_filter> {
    let answers = |value: &u32| [jump(JUMP_IF_EQUAL, *value, 0, 1), answer(action)];
    values.iter().flat_map(answers).collect()
}

/// Allows the call if it carries the pass, in an argument that no call with such a verdict uses.
fn passed(pass: u64, otherwise: u32) -> Vec<sock_filter> {
    is(5, pass, otherwise)
}

/// Allows this value of an argument. It compares both halves before it decides, so timing reveals
/// nothing about the first.
fn is(number: u32, value: u64, otherwise: u32) -> Vec<sock_filter> {
    let (low, high) = (value as u32, (value >> 32) as u32);
    vec![
        load(argument(number)),
        statement(XOR, low),
        statement(KEEP, 0),
        load(argument(number) + 4),
        statement(XOR, high),
        statement(OR_KEPT, 0),
        jump(JUMP_IF_EQUAL, 0, 0, 1),
        answer(ALLOW),
        answer(otherwise),
    ]
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xC000_00B7;

/// The same calls with other numbers (x32) on the same architecture.
#[cfg(target_arch = "x86_64")]
const FOREIGN_NUMBERS: Option<u32> = Some(0x4000_0000);
#[cfg(target_arch = "aarch64")]
const FOREIGN_NUMBERS: Option<u32> = None;

const NAMESPACE_FLAGS: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u32;

/// The flags of `open` with which its mode matters. `O_TMPFILE` contains `O_DIRECTORY`, which alone
/// creates nothing.
const MAKES_A_FILE: u32 = (libc::O_CREAT | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u32;

/// The type of a socket, without its flags.
const SOCKET_TYPE: u32 = 0xf;

/// Inserts keys into a terminal as if they were typed.
const TYPING: [u32; 2] = [libc::TIOCSTI as u32, libc::TIOCLINUX as u32];

/// The type byte of an `ioctl` command, which stands for a family of them.
const CONTROL_FAMILY: u32 = 0xff00;

/// Families that can change or create a file through a descriptor opened for reading: of all file
/// systems (`f`, `v`), of xfs and its quotas (`X`), fat (`r`), btrfs, bcachefs, f2fs.
const FILE_CONTROL_FAMILIES: [u32; 7] = [0x6600, 0x7600, 0x5800, 0x7200, 0x9400, 0xbc00, 0xf500];

/// The members of those families that only read (FS_IOC_GETFLAGS, FS_IOC_GETVERSION,
/// FS_IOC_FSGETXATTR, FS_IOC_FIEMAP) or need a descriptor for writing (FICLONE, FICLONERANGE).
const HARMLESS_FILE_CONTROLS: [u32; 6] =
    [0x8008_6601, 0x8008_7601, 0x801C_581F, 0xC020_660B, 0x4004_9409, 0x4020_940D];

#[cfg(test)]
mod tests {
    use super::super::bpf;
    use super::*;

    fn run(filter: &Filter, number: u32, arguments: [u64; 6]) -> u32 {
        let mut data = [number, ARCHITECTURE, 0, 0].map(u32::to_le_bytes).concat();
        data.extend(arguments.iter().flat_map(|argument| argument.to_le_bytes()));
        bpf::run(&filter.program, &data)
    }

    const PASS: u64 = 0x0123_4567_89ab_cdef;

    const BOTH: [(Network, MetadataChanges); 4] = [
        (Network::On, MetadataChanges::Free),
        (Network::On, MetadataChanges::Barred),
        (Network::Off, MetadataChanges::Free),
        (Network::Off, MetadataChanges::Barred),
    ];

    #[test]
    fn the_search_finds_what_the_list_says() {
        for (network, metadata) in BOTH {
            let (filter, rules) = (Filter::new(network, metadata, PASS), rules(network, metadata));
            for number in 0..1000 {
                let want = match rules.get(&number).copied().unwrap_or(CallRule::Allow) {
                    CallRule::Allow => ALLOW,
                    CallRule::Refuse | CallRule::Start => REFUSE,
                    CallRule::Absent | CallRule::StartOrAbsent => ABSENT,
                    _ => continue, // depends on its arguments
                };
                assert_eq!(run(&filter, number, [0; 6]), want, "{number} {network:?} {metadata:?}");
            }
        }
    }

    fn check(call: i64, arguments: [u64; 6], want: u32) {
        let filter = Filter::new(Network::Off, MetadataChanges::Barred, PASS);
        assert_eq!(run(&filter, call as u32, arguments), want, "{call} {arguments:?}");
    }

    #[test]
    fn a_thread_can_be_made_and_a_namespace_cannot() {
        check(libc::SYS_clone, [0x3d0f00, 0, 0, 0, 0, 0], ALLOW);
        check(libc::SYS_clone, [17, 0, 0, 0, 0, 0], ALLOW);
        check(libc::SYS_clone, [libc::CLONE_NEWUSER as u64 | 17, 0, 0, 0, 0, 0], REFUSE);
        check(libc::SYS_clone3, [0; 6], ABSENT);
    }

    #[test]
    fn a_start_shows_its_pass_and_nobody_else_has_it() {
        let namespaces = libc::CLONE_NEWNS as u64;
        let others =
            [0, !PASS, PASS & 0xffff_ffff, PASS & !0xffff_ffff, PASS ^ 1, PASS ^ (1 << 63)];
        let calls = [
            (libc::SYS_open_tree, REFUSE),
            (libc::SYS_move_mount, REFUSE),
            (libc::SYS_mount_setattr, REFUSE),
            (libc::SYS_clone, REFUSE),
            (libc::SYS_clone3, ABSENT),
        ];
        for (call, refusal) in calls {
            check(call, [namespaces, 0, 0, 0, 0, PASS], ALLOW);
            others.iter().for_each(|shown| check(call, [namespaces, 0, 0, 0, 0, *shown], refusal));
        }
        // Calls that no start needs are refused even with the pass.
        for call in [libc::SYS_mount, libc::SYS_unshare, libc::SYS_setns, libc::SYS_ptrace] {
            check(call, [PASS; 6], REFUSE);
        }
        assert_ne!(draw_pass(), draw_pass());
    }

    #[test]
    fn sockets_come_in_connected_pairs_or_not_at_all() {
        let unix = libc::AF_UNIX as u64;
        let pair = |kind: i32| [unix, kind as u64, 0, 0, 0, 0];
        check(libc::SYS_socketpair, pair(libc::SOCK_STREAM | libc::SOCK_CLOEXEC), ALLOW);
        check(libc::SYS_socketpair, pair(libc::SOCK_SEQPACKET), ALLOW);
        check(libc::SYS_socketpair, pair(libc::SOCK_DGRAM), REFUSE);
        check(libc::SYS_socketpair, [libc::AF_TIPC as u64, 1, 0, 0, 0, 0], REFUSE);
        check(libc::SYS_sendto, [3, 9, 9, 0, 0, 0], ALLOW);
        check(libc::SYS_sendto, [3, 9, 9, 0, 9, 16], REFUSE);
        check(libc::SYS_sendto, [3, 9, 9, 0, 1 << 32, 16], REFUSE);
    }

    #[test]
    fn limits_of_others_can_only_be_looked_at() {
        check(libc::SYS_prlimit64, [0, 7, 9, 9, 0, 0], ALLOW);
        check(libc::SYS_prlimit64, [1, 7, 0, 9, 0, 0], ALLOW);
        check(libc::SYS_prlimit64, [1, 7, 9, 9, 0, 0], REFUSE);
    }

    #[test]
    fn no_file_gets_a_setuid_or_setgid_mode() {
        let filter = Filter::new(Network::Off, MetadataChanges::Free, PASS);
        let check = |call: i64, arguments: [u64; 6], want: u32| {
            assert_eq!(run(&filter, call as u32, arguments), want, "{call} {arguments:?}");
        };
        for (mode, want) in [(0o755, ALLOW), (0o1777, ALLOW), (0o4755, REFUSE), (0o2755, REFUSE)] {
            check(libc::SYS_fchmod, [3, mode, 0, 0, 0, 0], want);
            check(libc::SYS_fchmodat, [3, 9, mode, 0, 0, 0], want);
            check(452, [3, 9, mode, 0, 0, 0], want);
            check(libc::SYS_mkdirat, [3, 9, mode, 0, 0, 0], want);
            check(libc::SYS_mknodat, [3, 9, mode | 0o100000, 0, 0, 0], want);
            check(libc::SYS_openat, [3, 9, libc::O_CREAT as u64, mode, 0, 0], want);
            check(libc::SYS_openat, [3, 9, libc::O_TMPFILE as u64, mode, 0, 0], want);
            // The mode does not matter if nothing is created.
            check(libc::SYS_openat, [3, 9, libc::O_DIRECTORY as u64, mode, 0, 0], ALLOW);
        }
        check(libc::SYS_openat2, [3, 9, 9, 24, 0, 0], ABSENT);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn nor_by_an_older_call() {
        let filter = Filter::new(Network::Off, MetadataChanges::Free, PASS);
        let check = |call: i64, arguments: [u64; 6], want: u32| {
            assert_eq!(run(&filter, call as u32, arguments), want, "{call} {arguments:?}");
        };
        for (mode, want) in [(0o755, ALLOW), (0o4755, REFUSE), (0o2755, REFUSE)] {
            for call in [libc::SYS_chmod, libc::SYS_mkdir, libc::SYS_mknod, libc::SYS_creat] {
                check(call, [9, mode, 0, 0, 0, 0], want);
            }
            check(libc::SYS_open, [9, libc::O_CREAT as u64, mode, 0, 0, 0], want);
            check(libc::SYS_open, [9, 0, mode, 0, 0, 0], ALLOW);
        }
    }

    #[test]
    fn nothing_is_typed_into_a_terminal() {
        check(libc::SYS_ioctl, [0, 0xdead_0000_0000 | TYPING[0] as u64, 0, 0, 0, 0], REFUSE);
        check(libc::SYS_ioctl, [0, libc::TIOCGWINSZ, 0, 0, 0, 0], ALLOW);
    }

    #[test]
    fn files_are_looked_at_and_not_controlled() {
        let control = |command: u64| [3, command, 0, 0, 0, 0];
        let (set_flags, make_subvolume, clone) = (0x4008_6602, 0x5000_940E, 0x4004_9409);
        check(libc::SYS_ioctl, control(set_flags), REFUSE);
        check(libc::SYS_ioctl, control(make_subvolume), REFUSE);
        check(libc::SYS_ioctl, control(clone), ALLOW);
        check(libc::SYS_ioctl, control(0x8008_6601), ALLOW);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn numbers_of_another_interface_are_not_there() {
        check(0x4000_0000 | libc::SYS_connect, [0; 6], ABSENT);
        check(0xffff_ffff, [0; 6], ABSENT);
    }
}
