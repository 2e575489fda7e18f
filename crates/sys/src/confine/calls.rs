//! Which system calls a confined command is refused, and why each.

use std::collections::BTreeMap;
use std::ffi::c_long;

use super::filter::{Traffic, Upkeep};

/// What the filter says to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow,
    /// EPERM.
    Refuse,
    /// ENOSYS: callers then take the older call, whose arguments can be seen.
    Absent,
    Ask(Question),
    /// Refused, but to who shows the pass: a start needs it before the command runs.
    Start,
    /// The same, and otherwise absent.
    StartOrAbsent,
}

/// What an answer depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// `clone` may make processes and threads, and namespaces for a start.
    Namespaces,
    /// `ioctl` may not type into a terminal, nor change a file's flags where upkeep is barred.
    Control(Upkeep),
    /// A pair of connected sockets, of kinds that can never be sent anywhere else.
    Pair,
    /// `sendto` on what is connected: no address.
    Connected,
    /// `prlimit` of the caller itself, or only to look.
    OwnLimits,
}

/// The calls that are not simply allowed, by number.
pub(super) fn rules(traffic: Traffic, upkeep: Upkeep) -> BTreeMap<u32, Verdict> {
    let mut rules = BTreeMap::new();
    let mut add = |calls: &[c_long], verdict| {
        rules.extend(calls.iter().map(|call| (*call as u32, verdict)));
    };
    add(OTHERS, Verdict::Refuse);
    add(PLACES, Verdict::Refuse);
    add(KERNEL, Verdict::Refuse);
    add(SHARED_MEMORY, Verdict::Refuse);
    add(STARTING, Verdict::Start);
    add(&[libc::SYS_clone3], Verdict::StartOrAbsent);
    add(&[libc::SYS_clone], Verdict::Ask(Question::Namespaces));
    add(&[libc::SYS_ioctl], Verdict::Ask(Question::Control(upkeep)));
    add(&[libc::SYS_prlimit64], Verdict::Ask(Question::OwnLimits));
    if traffic == Traffic::Barred {
        add(SOCKETS, Verdict::Refuse);
        add(&[libc::SYS_socketpair], Verdict::Ask(Question::Pair));
        add(&[libc::SYS_sendto], Verdict::Ask(Question::Connected));
    }
    if upkeep == Upkeep::Barred {
        add(METADATA, Verdict::Refuse);
        add(OLD_METADATA, Verdict::Refuse);
    }
    rules
}

/// Reaching into other processes.
const OTHERS: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// Other files under the same names: namespaces, mounts, handles that lead past paths.
const PLACES: &[c_long] = &[
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    OPEN_TREE_ATTR,
    libc::SYS_open_by_handle_at,
];

/// Those of them that lay the mounts of a confined command. None has a sixth argument.
const STARTING: &[c_long] = &[libc::SYS_open_tree, libc::SYS_move_mount, libc::SYS_mount_setattr];

/// Parts of the kernel that see past this filter, or have been broken out of most often.
const KERNEL: &[c_long] = &[
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
];

/// Memory and queues that processes of the same user share by number or name, whatever the files.
const SHARED_MEMORY: &[c_long] = &[
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
];

/// Without `socket` there is nothing to reach anybody with; the others are for sockets of pairs.
/// `sendmsg` and `recvmsg` stay: on a pair they reach only the other end.
const SOCKETS: &[c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// What Landlock does not see: modes, owners, times, attributes.
const METADATA: &[c_long] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    SETXATTRAT,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    REMOVEXATTRAT,
    FILE_SETATTR,
];

/// The same by names that newer processors never had.
#[cfg(target_arch = "x86_64")]
const OLD_METADATA: &[c_long] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_METADATA: &[c_long] = &[];

// Not in libc yet; since 424 a call has the same number on every processor.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const OPEN_TREE_ATTR: c_long = 467;
const FILE_SETATTR: c_long = 469;
