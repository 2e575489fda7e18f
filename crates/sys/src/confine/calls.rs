//! Which system calls a confined command may not use, and why.

use std::collections::BTreeMap;
use std::ffi::c_long;

use super::filter::{MetadataChanges, Network};

/// What the filter does with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallRule {
    Allow,
    /// EPERM.
    Refuse,
    /// ENOSYS: callers then fall back to the older call, whose arguments the filter can see.
    Absent,
    /// Refused, except with the pass: a start needs the call before the command runs.
    Start,
    /// The same, but ENOSYS without the pass.
    StartOrAbsent,
    /// `clone` may create processes and threads, and namespaces only for a start.
    Namespaces,
    /// `ioctl` may not type into a terminal, nor change a file's flags if metadata is barred.
    Control(MetadataChanges),
    /// A pair of connected sockets, of types that cannot send anywhere else.
    Pair,
    /// `sendto` on a connected socket: without an address.
    Connected,
    /// `prlimit` on the caller itself, or read-only.
    OwnLimits,
    /// A mode without setuid and setgid, in the argument with this number.
    Mode(u32),
    /// The same for `open` if it creates a file: these arguments hold its flags and mode.
    ModeIfMade {
        flags: u32,
        mode: u32,
    },
}

/// The calls that are not simply allowed, by number.
pub(super) fn rules(network: Network, metadata: MetadataChanges) -> BTreeMap<u32, CallRule> {
    let mut rules = BTreeMap::new();
    let mut add = |calls: &[c_long], verdict| {
        rules.extend(calls.iter().map(|call| (*call as u32, verdict)));
    };
    add(OTHERS, CallRule::Refuse);
    add(PLACES, CallRule::Refuse);
    add(KERNEL, CallRule::Refuse);
    add(SHARED_MEMORY, CallRule::Refuse);
    add(STARTING, CallRule::Start);
    add(&[libc::SYS_clone3], CallRule::StartOrAbsent);
    add(&[libc::SYS_clone], CallRule::Namespaces);
    add(&[libc::SYS_ioctl], CallRule::Control(metadata));
    add(&[libc::SYS_prlimit64], CallRule::OwnLimits);
    MODES.iter().chain(OLD_MODES).for_each(|(call, verdict)| add(&[*call], *verdict));
    add(&[libc::SYS_openat2], CallRule::Absent);
    if network == Network::Off {
        add(SOCKETS, CallRule::Refuse);
        add(&[libc::SYS_socketpair], CallRule::Pair);
        add(&[libc::SYS_sendto], CallRule::Connected);
    }
    if metadata == MetadataChanges::Barred {
        add(METADATA, CallRule::Refuse);
        add(OLD_METADATA, CallRule::Refuse);
    }
    rules
}

/// Access to other processes.
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

/// Calls that could change which files the names refer to: namespaces, mounts, and handles that
/// bypass paths.
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

/// The mount calls that set up a confined command. None of them has a sixth argument.
const STARTING: &[c_long] = &[libc::SYS_open_tree, libc::SYS_move_mount, libc::SYS_mount_setattr];

/// Parts of the kernel that bypass this filter, or that exploits use most often.
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
    KEXEC_FILE_LOAD,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
];

/// Memory and queues that processes of the same user share by number or name, regardless of files.
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

/// Without `socket` a command can reach nobody. The other calls would act on the sockets of a pair.
/// `sendmsg` and `recvmsg` stay allowed: on a pair they reach only the other end.
const SOCKETS: &[c_long] = &[
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
];

/// Calls that set the mode of a file. A setuid file owned by user 0 in a workspace would give
/// everybody who executes it what the command itself was refused. `openat2` has its mode behind a
/// pointer, so it returns ENOSYS and callers fall back to `openat`.
const MODES: &[(c_long, CallRule)] = &[
    (libc::SYS_fchmod, CallRule::Mode(1)),
    (libc::SYS_fchmodat, CallRule::Mode(2)),
    (FCHMODAT2, CallRule::Mode(2)),
    (libc::SYS_mkdirat, CallRule::Mode(2)),
    (libc::SYS_mknodat, CallRule::Mode(2)),
    (libc::SYS_openat, CallRule::ModeIfMade { flags: 2, mode: 3 }),
];

/// The older calls for the same, which newer architectures never had.
#[cfg(target_arch = "x86_64")]
const OLD_MODES: &[(c_long, CallRule)] = &[
    (libc::SYS_chmod, CallRule::Mode(1)),
    (libc::SYS_mkdir, CallRule::Mode(1)),
    (libc::SYS_mknod, CallRule::Mode(1)),
    (libc::SYS_creat, CallRule::Mode(1)),
    (libc::SYS_open, CallRule::ModeIfMade { flags: 1, mode: 2 }),
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_MODES: &[(c_long, CallRule)] = &[];

/// What Landlock does not control: modes, owners, times, attributes.
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

/// The older calls for the same, which newer architectures never had.
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

// libc lacks this constant for musl on aarch64.
#[cfg(all(target_arch = "aarch64", target_env = "musl"))]
const KEXEC_FILE_LOAD: c_long = 294;
#[cfg(not(all(target_arch = "aarch64", target_env = "musl")))]
const KEXEC_FILE_LOAD: c_long = libc::SYS_kexec_file_load;

// Not in libc yet. From 424 on, a call has the same number on every architecture.
const FCHMODAT2: c_long = 452;
const SETXATTRAT: c_long = 463;
const REMOVEXATTRAT: c_long = 466;
const OPEN_TREE_ATTR: c_long = 467;
const FILE_SETATTR: c_long = 469;
